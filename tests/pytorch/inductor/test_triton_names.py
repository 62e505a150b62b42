"""Triton kernels by their names and recorded arguments."""

from __future__ import annotations

import pytest

from roofline.costs.calls import Call, Tensor
from roofline.pytorch.inductor import triton_names


@pytest.mark.parametrize(
    ("name", "parts", "op_class"),
    [
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "add mean mul pow rsqrt", "normalisation"),
        (
            "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
            "unsafe_view add mean mul pow rsqrt",
            "normalisation",
        ),
        ("triton_poi_fused__unsafe_view_mul_silu_2", "unsafe_view mul silu", "pointwise"),
        ("triton_poi_fused__to_copy_1", "to_copy", "movement"),
        ("triton_per_fused__softmax_add_3", "softmax add", "softmax"),
        ("triton_per_fused_amax_exp_sub_sum_3", "amax exp sub sum", "softmax"),
        (
            "triton_per_fused_native_layer_norm_native_layer_norm_backward_4",
            "native_layer_norm native_layer_norm_backward",
            "normalisation",
        ),
        ("triton_poi_fused_cat_0", "cat", "movement"),
        ("triton_poi_fused_embedding_5", "embedding", "embedding"),
        ("triton_red_fused_sum_6", "sum", "reduction"),
        ("triton_red_fused_add_6", "add", "reduction"),  # it reduces, whatever the name has room for
        ("triton_tem_fused_mm_0", "mm", "contraction"),
        ("triton_poi_fused_addmm_relu_0", "addmm relu", "pointwise"),
        ("triton_poi_fused_convolution_0", "convolution", "pointwise"),
        ("triton_per_fused_bmm_sum_0", "bmm sum", "reduction"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_0", "scaled_dot_product_flash_attention", "pointwise"),
        ("triton_poi_fused_0", "", "pointwise"),
        # The product ran before, in a kernel of a library: what is left is its bias and what follows.
        ("triton_poi_fused_addmm_gelu_view_2", "addmm gelu view", "pointwise"),
        ("triton_red_fused_addmm_mean_pow_rsqrt_2", "addmm mean pow rsqrt", "normalisation"),
        ("triton_poi_fused_constant_pad_nd_moe_forward_0", "constant_pad_nd", "movement"),
        ("triton_poi_fused_add_bitwise_and_bitwise_not_ge_lt_0", "add bitwise_and bitwise_not ge lt", "pointwise"),
    ],
)
def test_constituents_and_class(name, parts, op_class):
    assert triton_names.constituents(name) == tuple(parts.split())
    assert triton_names.op_class(name) == op_class
    assert triton_names.is_triton(name)


def test_what_is_a_triton_kernel():
    assert triton_names.is_triton("my_kernel", b'{"kernel_backend": "triton"}')
    assert not triton_names.is_triton("my_kernel", b'{"kernel_backend": "cpp"}')
    assert not triton_names.is_triton("aten::mul", b"{}")


def tensor(*shape, dtype="c10::BFloat16", stride=None):
    return Tensor(shape, stride, dtype, device="")


def test_a_pointwise_kernel_moves_its_tensors_once():
    # silu(x) * y of 4 x 8 bf16 numbers: 64 bytes each of x, y and the result; silu is a multiplication and a sigmoid.
    call = Call("triton_poi_fused_mul_silu_2", None, (tensor(4, 8), tensor(32), tensor(4, 8), 32))
    found = triton_names.costed(call)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (128, 64)
    assert (found.cost.vector_flops, found.cost.functions) == (64, {"sigmoid": 32})
    assert (found.cost.flops, found.cost.quality, found.dtype) == (0, "assumed", "bf16")
    assert [(part.kind, part.op_class, part.cost.quality) for part in found.parts] == [
        ("mul", "pointwise", "unknown"),
        ("silu", "pointwise", "unknown"),
    ]


def test_a_reduction_counts_its_root_once_per_row():
    call = Call("triton_red_fused_mean_mul_pow_rsqrt_0", None, (tensor(4, 8), tensor(8), tensor(4, 8), 4, 8))
    found = triton_names.costed(call)
    assert (found.cost.vector_flops, found.cost.functions) == (3 * 32, {"rsqrt": 4})
    assert found.cost.bytes == 64 + 16 + 64


def test_a_single_tensor_is_read_and_written():
    found = triton_names.costed(Call("triton_poi_fused_add_0", None, (tensor(8), 8)))
    assert (found.cost.bytes_read, found.cost.bytes_written, found.parts) == (16, 16, ())


def test_an_op_of_which_no_rule_is_known_leaves_the_work_unknown_but_not_the_traffic():
    found = triton_names.costed(
        Call("triton_poi_fused_add_upsample_bicubic2d_native_layer_norm_backward_0", None, (tensor(8),))
    )
    assert (found.cost.vector_flops, found.cost.flops, found.cost.bytes) == (None, 0, 32)
    assert "native_layer_norm_backward" in found.cost.note
    product = triton_names.costed(Call("triton_tem_fused_mm_0", None, (tensor(8, 8), tensor(8, 8), tensor(8, 8))))
    assert (product.cost.flops, product.cost.bytes, product.op_class) == (None, 3 * 128, "contraction")


@pytest.mark.parametrize("inputs", [(), (3,), (Tensor((4,), None, "qint99", device=""),)])
def test_without_tensors_of_known_size_nothing_is_known(inputs):
    assert triton_names.costed(Call("triton_poi_fused_add_0", None, inputs)).cost.quality == "unknown"


def test_odd_names_take_no_time():
    assert triton_names.constituents("triton_poi_fused_" + "_" * 10**5 + "0") == ()
    triton_names.constituents("triton_poi_fused_" + "add_" * 10**5 + "0")


def test_no_kernel_but_a_template_holds_a_product():
    """32 numbers and a bias of 8: an addition and a maximum for each, and no matrix work."""
    call = Call("triton_poi_fused_addmm_relu_0", None, (tensor(4, 8), tensor(8), 32))
    found = triton_names.costed(call, "XBLOCK=1024")
    assert (found.cost.flops, found.cost.model_flops, found.cost.vector_flops) == (0, 0, 2 * 32)
    assert found.cost.quality == "assumed"
    mine = triton_names.costed(Call("my_matmul", None, (tensor(8, 8), tensor(8, 8))))
    assert (mine.cost.flops, mine.cost.model_flops) == (None, None)


@pytest.mark.parametrize(
    ("name", "inputs", "blocks", "before", "read", "written"),
    [
        # The bias, 8 numbers, cannot hold the 32 results: they lie where the product was.
        ("poi_fused_addmm_0", (tensor(4, 8), tensor(8), 32), "XBLOCK=64", None, 64 + 16, 64),
        # The same by two dimensions, and in a reduction whose rows have 8 numbers.
        ("poi_fused_addmm_0", (tensor(4, 8), tensor(8), 4, 8), "YBLOCK=4,XBLOCK=8", None, 64 + 16, 64),
        ("per_fused_add_mean_0", (tensor(4, 8), tensor(1), 4, 8), "XBLOCK=1", None, 64 + 2, 64),
        # The bias of a product in three parts holds more than a number for each of the 4 rows, and fewer than 32.
        ("red_fused_add_mean_0", (tensor(4, 8), tensor(4, 8), tensor(24), 4, 8), "XBLOCK=1", None, 64 + 64 + 48, 64),
        ("red_fused_mean_0", (tensor(4, 8), tensor(4), 4, 8), "XBLOCK=1", None, 64, 8),
        # What the product before has just written is read, so the first is written over.
        ("poi_fused_mul_silu_0", (tensor(2, 2, 8), tensor(4, 8), 32), "XBLOCK=64", tensor(4, 8), 128, 64),
        ("poi_fused_mul_silu_0", (tensor(2, 2, 8), tensor(4, 8), 32), "XBLOCK=64", None, 64, 64),
        ("poi_fused_mul_silu_0", (tensor(4, 8), tensor(4, 8), 32), "XBLOCK=64", tensor(4, 8), 64, 64),
        # A part of what is larger, twice where nothing else gives the other operand.
        ("poi_fused_clone_split_0", (tensor(4, 24), tensor(4, 8), 32), "XBLOCK=64", None, 64, 64),
        ("poi_fused_mul_silu_split_0", (tensor(4, 16), tensor(4, 8), 32), "XBLOCK=64", None, 128, 64),
        ("poi_fused_embedding_0", (tensor(4), tensor(900, 8), tensor(4, 8), 32), "XBLOCK=64", None, 8 + 64, 64),
        # Of a larger result the part that the kernel has numbers for: rows of a cache.
        ("poi_fused_index_put_0", (tensor(4), tensor(4, 8), tensor(900, 8), 32), "XBLOCK=64", None, 8 + 64, 64),
        ("poi_fused_0", (tensor(4), tensor(900, 8), tensor(4, 8), 32), "XBLOCK=64", None, 8 + 64, 64),
        # Without the number of elements nothing says how much of the table is read; what is no larger is read once.
        ("poi_fused_0", (tensor(4), tensor(900, 8), tensor(4, 8)), "XBLOCK=64", None, None, None),
        ("poi_fused_add_0", (tensor(4, 8), tensor(8), tensor(4, 8)), "XBLOCK=64", None, 64 + 16, 64),
        # Windows, and sums so short that they are no loop.
        ("poi_fused_add_mean_0", (tensor(4, 8, 2), tensor(4, 8), 32), "XBLOCK=64", None, 128, 64),
        ("poi_fused_max_pool2d_with_indices_0", (tensor(16, 16), tensor(8, 8), 64), "XBLOCK=64", None, 512, 128),
    ],
)
def test_what_is_moved_by_names_and_sizes(name, inputs, blocks, before, read, written):
    found = triton_names.costed(Call(f"triton_{name}", None, inputs), blocks, before)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (read, written)
