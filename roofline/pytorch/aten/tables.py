"""Holds tables of aten ops by kind. Names are without namespace and trailing "_"."""

from __future__ import annotations

from roofline.core.vocabulary import OpClass
from roofline.costs.formulas import FUNCTIONS, RMS_NORM, SPECIAL

#: Products of groups, as experts are: which rows are whose say offsets, which are data.
GROUPED = frozenset("_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2".split())
#: Products with weights of 4 bits, which have a scale per group of some of them.
GROUPED_WEIGHTS = frozenset(
    (
        "_weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros "
        "_dyn_quant_matmul_4bit"
    ).split()
)
#: Linear layers with a weight of 8 bits, and an input that is brought to 8 bits.
INT8_LINEAR = frozenset(["fbgemm_linear_int8_weight", "fbgemm_linear_int8_weight_fp32_activation"])
#: What brings numbers to 8 bits and back, and says of each whether it lay within the limits.
FAKE_QUANTISED = frozenset(
    (
        "fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask "
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"
    ).split()
)
#: Products that may have a sparse factor, and the one of which results are asked for at some places alone.
SPARSE_PRODUCTS = frozenset("mm addmm mv addmv bmm _sparse_mm _sparse_addmm".split())
SAMPLED_PRODUCT = "sparse_sampled_addmm"
CONTRACTIONS = frozenset(
    (
        "mm addmm bmm baddbmm addbmm mv addmv dot vdot ger addr _int_mm _scaled_mm _addmm_activation "
        "_sparse_mm _sparse_addmm _mm_plus_mm convolution _convolution convolution_overrideable cudnn_convolution "
        "mkldnn_convolution miopen_convolution convolution_backward mkldnn_linear linear linear_backward matmul einsum "
        "tensordot inner bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
        "mkldnn_rnn_layer mkldnn_rnn_layer_backward _cudnn_rnn _cudnn_rnn_backward _trilinear _euclidean_dist conv_tbc "
        "_weight_int8pack_mm sparse_sampled_addmm"
    ).split()
).union(GROUPED, GROUPED_WEIGHTS, INT8_LINEAR)
#: Ops whose result is their first argument in another place, type or layout.
COPIES = frozenset(("clone", "_to_copy", "contiguous"))
#: Contractions that add `beta * self`.
ADDED = frozenset(["addmm", "baddbmm", "addbmm", "addmv", "addr", "_addmm_activation"])
ATTENTION = frozenset(
    (
        "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
        "_scaled_dot_product_fused_attention_overrideable _flash_attention_forward "
        "_efficient_attention_forward"
    ).split()
)
ATTENTION_BACKWARD = frozenset(
    (
        "_scaled_dot_product_flash_attention_backward "
        "_scaled_dot_product_flash_attention_for_cpu_backward "
        "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward "
        "_scaled_dot_product_fused_attention_overrideable_backward _flash_attention_backward "
        "_efficient_attention_backward"
    ).split()
)

#: Direct solvers and factorisations.
LINEAR_ALGEBRA = frozenset(
    (
        "linalg_cholesky_ex cholesky linalg_ldl_factor_ex cholesky_inverse linalg_inv_ex linalg_lu linalg_lu_factor_ex "
        "_linalg_det _linalg_slogdet linalg_solve_triangular triangular_solve linalg_lu_solve linalg_ldl_solve "
        "_cholesky_solve_helper cholesky_solve _linalg_solve_ex linalg_qr geqrf linalg_householder_product ormqr"
    ).split()
)

#: What takes rounds until it is near enough: nobody knows how many, and its matrices are read and written once.
ITERATIVE = frozenset("_linalg_svd linalg_eig _linalg_eigh _linalg_eigvals linalg_eigvals linalg_lstsq".split())

_CLASS_NAMES: dict[OpClass, str] = {
    "normalisation": "native_layer_norm native_layer_norm_backward native_batch_norm native_batch_norm_backward "
    "_native_batch_norm_legit _batch_norm_with_update batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward "
    "miopen_batch_norm miopen_batch_norm_backward native_group_norm native_group_norm_backward _fused_rms_norm "
    "_fused_rms_norm_backward rms_norm batch_norm_elemt batch_norm_stats layer_norm batch_norm group_norm "
    "instance_norm",
    "softmax": "_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data _safe_softmax "
    "_masked_softmax _masked_softmax_backward softmax log_softmax logsumexp _sparse_softmax _sparse_log_softmax "
    "_sparse_softmax_backward_data _sparse_log_softmax_backward_data",
    "reduction": "sum mean amax amin max min prod any all argmax argmin norm linalg_vector_norm var var_mean std "
    "std_mean cumsum cumprod nansum aminmax nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward "
    "mse_loss mse_loss_backward smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits "
    "max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward _adaptive_avg_pool2d "
    "_adaptive_avg_pool2d_backward count_nonzero upsample_nearest1d_backward upsample_nearest2d_backward "
    "upsample_nearest3d_backward cummax cummin logcumsumexp max_pool3d_with_indices max_pool3d_with_indices_backward "
    "avg_pool3d avg_pool3d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward adaptive_max_pool2d "
    "adaptive_max_pool2d_backward adaptive_max_pool3d adaptive_max_pool3d_backward fractional_max_pool2d "
    "fractional_max_pool2d_backward fractional_max_pool3d fractional_max_pool3d_backward segment_reduce "
    "_segment_reduce_backward multi_margin_loss multi_margin_loss_backward _ctc_loss _ctc_loss_backward "
    "_is_all_true _is_any_true _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_bilinear2d_aa_backward "
    "_upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward quantized_max_pool1d "
    "quantized_max_pool2d quantized_max_pool3d mkldnn_max_pool2d mkldnn_max_pool3d",
    "embedding": "embedding embedding_dense_backward embedding_renorm index_select index gather scatter scatter_add "
    "index_add index_put _index_put_impl _unsafe_index embedding_bag _embedding_bag _embedding_bag_forward_only "
    "_embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_per_sample_weights_backward "
    "take index_copy index_fill "
    "index_select_backward scatter_reduce masked_select nonzero nonzero_static _unique2 unique_dim "
    "unique_consecutive put index_reduce",
    "movement": "copy clone _to_copy cat stack contiguous zero fill zeros ones full zeros_like ones_like full_like "
    "new_zeros new_ones new_full arange linspace constant_pad_nd repeat roll flip tril triu select_backward "
    "slice_backward slice_scatter select_scatter as_strided_scatter repeat_interleave _reshape_copy eye tril_indices "
    "triu_indices one_hot _pin_memory permute_copy expand_copy _copy_from _foreach_copy _foreach_zero masked_scatter "
    "split_with_sizes_copy split_copy unbind_copy unfold_backward im2col col2im "
    "reflection_pad2d replication_pad2d scalar_tensor _convert_indices_from_coo_to_csr "
    "_convert_indices_from_csr_to_coo native_channel_shuffle channel_shuffle _pack_padded_sequence "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d diagonal_backward int_repr "
    "fbgemm_pack_quantized_matrix",
    # Activations that torch does not tag as pointwise.
    "pointwise": "mish_backward glu glu_backward log_sigmoid_forward log_sigmoid_backward rrelu_with_noise "
    "rrelu_with_noise_backward softplus_backward hardswish hardswish_backward elu_backward leaky_relu_backward "
    "hardtanh_backward hardsigmoid_backward _prelu_kernel _prelu_kernel_backward softshrink_backward "
    "hardshrink_backward frexp quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize "
    "_transform_bias_rescale_qkv",
    "random": "bernoulli uniform normal random exponential native_dropout native_dropout_backward rand randn randint "
    "randperm rand_like randn_like multinomial _fused_dropout geometric poisson binomial _standard_gamma "
    "_sample_dirichlet",
    "transfer": "_local_scalar_dense",
    "other": "sort topk argsort searchsorted bucketize histc histogram bincount median nanmedian mode kthvalue",
}
CLASS_OF: dict[str, OpClass] = {
    **{name: op_class for op_class, names in _CLASS_NAMES.items() for name in names.split()},
    **dict.fromkeys(FAKE_QUANTISED, "pointwise"),
    **dict.fromkeys(CONTRACTIONS, "contraction"),
    **dict.fromkeys(ATTENTION | ATTENTION_BACKWARD, "attention"),
}

#: Copies of a part of their argument, of which nothing else is read.
PARTS = frozenset(["narrow_copy", "select_copy", "slice_copy", "diagonal_copy"])
#: aten primitives that are not called what costs/formulas.py calls them.
PRIMITIVE: dict[str, str] = {
    **{name: name for name in ("add sub mul div neg abs minimum maximum addcmul addcdiv lerp clamp remainder").split()},
    **{name: name for name in FUNCTIONS - {"gcd"}},
    **{f"special_{name}": name for name in SPECIAL},
    "_standard_gamma_grad": "standard_gamma_grad",
    "_dirichlet_grad": "dirichlet_grad",
    "rsub": "sub",
    "true_divide": "div",
    "divide": "div",
    "subtract": "sub",
    "multiply": "mul",
    "negative": "neg",
    "reciprocal": "div",
    "square": "mul",
    "_conj_physical": "neg",  # of what is imaginary
    "relu": "maximum",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "fmin": "minimum",
    "fmax": "maximum",
    "hardtanh": "clamp",
    "fmod": "remainder",
    "floor_divide": "div",
    "float_power": "pow",
    **dict.fromkeys(("floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "frexp", "nextafter"), "round"),
    **dict.fromkeys(
        ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit", "equal", "isin"), "compare"
    ),
    **dict.fromkeys(("threshold_backward", "threshold", "where", "masked_fill", "tril", "triu"), "select"),
    **dict.fromkeys(("softshrink_backward", "hardshrink_backward"), "select"),
    **dict.fromkeys(("logical_not", "logical_and", "logical_or", "logical_xor"), "logical"),
    **dict.fromkeys(
        (
            "bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift "
            "__and__ __or__ __xor__ __lshift__ __rshift__ __ilshift__ __irshift__"
        ).split(),
        "bit",
    ),
    **dict.fromkeys(
        (
            "copy clone _to_copy zeros_like ones_like full_like cat stack index index_select gather embedding "
            "slice_scatter select_scatter scatter arange full zeros ones empty empty_like empty_strided "
            "new_empty new_zeros new_full new_ones new_empty_strided constant_pad_nd repeat roll flip "
            "as_strided_scatter index_put _unsafe_index _index_put_impl select_backward slice_backward "
            "scalar_tensor lift_fresh detach _reshape_alias resize fill zero alias lift_fresh_copy index_copy "
            "index_fill masked_select nonzero _local_scalar_dense sort topk argmax argmin any all "
            "unfold_backward linspace eye tril_indices triu_indices searchsorted bucketize masked_scatter "
            "reflection_pad2d replication_pad2d is_same_size _pin_memory count_nonzero _unique2 "
            "repeat_interleave record_stream _assert_async resolve_conj resolve_neg prelu_dummy "
            "unbind_copy split_copy split_with_sizes_copy copy_to median nanmedian mode kthvalue lu_unpack "
            "_is_all_true _is_any_true _linalg_check_errors _convert_indices_from_coo_to_csr "
            "_convert_indices_from_csr_to_coo empty_permuted nonzero_static int_repr fbgemm_pack_quantized_matrix"
        ).split(),
        "copy",
    ),
    **dict.fromkeys(PARTS, "copy"),
}
#: Reductions that keep every step, along a dimension.
SCANS = frozenset(["cumsum", "cumprod", "cummax", "cummin"])
#: Reductions: FLOP per application of the body.
REDUCTIONS = frozenset(["sum", "nansum", "mean", "amax", "amin", "max", "min", "prod", *SCANS])
#: Numbers drawn, one per output element, and FLOP per element beside (dropout multiplies by the mask and the scale).
RANDOM: dict[str, float] = {
    **dict.fromkeys(("bernoulli uniform normal random exponential geometric rand randn randint randperm").split(), 0.0),
    **dict.fromkeys(["rand_like", "randn_like", "randint_like", "multinomial"], 0.0),
    # What is drawn again until it fits is counted once.
    **dict.fromkeys(["poisson", "binomial", "_standard_gamma"], 0.0),
    "_sample_dirichlet": 2.0,  # draws of gamma over their sum
    "native_dropout": 2.0,
    "_fused_dropout": 2.0,
}
#: Ways to take the largest of windows, and how their names go on.
MAX_POOLS = (("max", "_with_indices"), ("adaptive_max", ""), ("fractional_max", ""))
#: (FLOP, functions) per element of the first tensor, for ops that torch cannot decompose: counted on their definition.
PER_ELEMENT: dict[str, tuple[float, dict[str, float]]] = {
    "cudnn_batch_norm": (8.0, {}),
    "miopen_batch_norm": (8.0, {}),
    "cudnn_batch_norm_backward": (11.0, {}),
    "miopen_batch_norm_backward": (11.0, {}),
    "_fused_rms_norm": (RMS_NORM, {}),
    "_fused_rms_norm_backward": (9.0, {}),
    "batch_norm_elemt": (4.0, {}),
    "allclose": (5.0, {}),  # |a - b| <= atol + |rtol * b|
    "native_dropout_backward": (2.0, {}),
    "_masked_scale": (2.0, {}),
    "_amp_foreach_non_finite_check_and_unscale": (1.0, {}),
    "_amp_update_scale": (1.0, {}),
    "embedding_dense_backward": (1.0, {}),  # each gradient element is added into its row
    **dict.fromkeys(  # each gradient is added to the element that was the largest
        [f"{kind}_pool{dim}d{end}_backward" for kind, end in MAX_POOLS for dim in (2, 3)], (1.0, {})
    ),
    # Over the scale, plus the zero point, and between two limits; back again 2.
    **dict.fromkeys(("quantize_per_tensor", "quantize_per_channel"), (4.0, {})),
    "quantize_per_tensor_dynamic": (6.0, {}),  # and the least and the largest of all are sought before
    "dequantize": (2.0, {}),
    **dict.fromkeys(FAKE_QUANTISED, (6.0, {})),
    # Each gradient is added to what it was made of: by itself, or times a weight for each point on each dimension.
    **dict.fromkeys(
        [f"{kind}{dim}d_backward" for kind in ("upsample_nearest", "_upsample_nearest_exact") for dim in (1, 2, 3)],
        (1.0, {}),
    ),
    "upsample_linear1d_backward": (4.0, {}),
    "upsample_bilinear2d_backward": (8.0, {}),
    "upsample_trilinear3d_backward": (16.0, {}),
    "upsample_bicubic2d_backward": (32.0, {}),
    # It runs as `elu`, with three factors; PyTorch's decomposition leaves out those that are 1.
    "celu": (3.0, {"expm1": 1.0}),
    "_thnn_fused_lstm_cell": (10.0, {"sigmoid": 3.0, "tanh": 2.0}),
}
#: Arguments that no kernel reads: only their shape is used, or that they are given.
UNREAD: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        [f"{kind}_pool{dim}d{end}_backward" for kind, end in MAX_POOLS for dim in (2, 3)], frozenset(("self",))
    ),
    **dict.fromkeys(
        [f"{kind}_pool{dim}d_backward" for kind in ("avg", "_adaptive_avg") for dim in (2, 3)], frozenset(("self",))
    ),
    "rrelu_with_noise": frozenset(("noise",)),
    "nll_loss_backward": frozenset(("self",)),
    "native_layer_norm_backward": frozenset(("bias",)),
    # Handed on to the gradient of this gradient.
    **dict.fromkeys(
        ("cudnn_batch_norm_backward", "miopen_batch_norm_backward"), frozenset(("running_mean", "running_var"))
    ),
    # The weights once more, side by side.
    **dict.fromkeys(("_cudnn_rnn", "_cudnn_rnn_backward"), frozenset(("weight_buf", "dropout_state"))),
    "nll_loss2d_backward": frozenset(("self",)),
    **dict.fromkeys(INT8_LINEAR, frozenset(("packed",))),  # the weight once more
    **dict.fromkeys(
        (
            "zeros_like ones_like full_like rand_like randn_like new_zeros new_ones new_full new_empty "
            "empty_like new_empty_strided"
        ).split(),
        frozenset(("self",)),
    ),
}
#: In-place ops that overwrite their target without reading it; `copy_` does too.
WRITE_ONLY = frozenset(
    (
        "copy_ fill_ zero_ bernoulli_ uniform_ normal_ random_ exponential_ geometric_ log_normal_ "
        "cauchy_ _foreach_copy_ _foreach_zero_"
    ).split()
)
ALLOCATIONS = frozenset(
    ("empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize _resize_output").split()
)
#: What hands PyTorch a tensor that was made outside of it, as of numpy's memory.
FROM_OUTSIDE = "lift_fresh"
#: What a profile and an execution trace call the step into a dispatch mode of Python inside an op.
DISPATCH_MODE = "PythonDispatchMode"
#: Ops that touch no elements: they answer a question about tensors, or order streams.
WORKLESS_CALLS = frozenset(
    (
        "result_type is_same_size record_stream set set_data _fused_sdp_choice is_pinned _version sym_size sym_stride "
        "sym_numel _has_compatible_shallow_copy_type can_cast is_floating_point is_complex lift_fresh "
        "_nnz sparse_dim dense_dim is_coalesced _nested_tensor_size _sparse_coo_tensor_with_dims_and_tensors "
        "_coalesced sparse_compressed_tensor _sparse_compressed_tensor_unsafe _sparse_compressed_tensor_with_dims "
        "_validate_sparse_compressed_tensor_args "
        "q_scale q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points qscheme"
    ).split()
)
GATHERS = frozenset(["embedding", "index_select", "gather", "index", "_unsafe_index", "take"])
SCATTERS = frozenset(
    (
        "index_put _index_put_impl index_copy scatter index_add scatter_add scatter_reduce index_fill put index_reduce"
    ).split()
)
#: Rows of a table, reduced bag by bag, and the gradients of that.
BAGS = frozenset(
    (
        "_embedding_bag _embedding_bag_forward_only _embedding_bag_backward _embedding_bag_dense_backward "
        "_embedding_bag_per_sample_weights_backward"
    ).split()
)
ACCUMULATING = frozenset(["index_add", "scatter_add", "scatter_reduce"])


def base(name: str) -> str:
    """ "aten::add_" is "add": the op, in place or not."""
    plain = name.partition("::")[2]
    return plain.rstrip("_") if not plain.startswith("__") else plain
