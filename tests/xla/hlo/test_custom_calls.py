"""Library calls that only a GPU or another build runs, from HLO text written by hand."""

from __future__ import annotations

import json

import pytest

from roofline.costs import formulas
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.bytes import accesses
from roofline.xla.hlo.cost import cost, title
from roofline.xla.hlo.custom_calls import asked_precision
from roofline.xla.hlo.flops import work
from roofline.xla.hlo.schedule import contractions

pytest.importorskip("jax")
import hlo_oracle


def call(target, result, *parameters, config=None, attributes="", computations=""):
    """A module of one custom call, and that call."""
    lines = "\n".join(f"  p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters))
    operands = ", ".join(f"p{number}" for number in range(len(parameters)))
    written = "" if config is None else f", backend_config={json.dumps(json.dumps(config))}"
    module = hlo.read(
        hlo_oracle.proto(
            f"HloModule m\n{computations}\nENTRY e {{\n{lines}\n  ROOT r = {result} custom-call({operands}), "
            f'custom_call_target="{target}"{attributes}{written}\n}}'
        )
    )
    return module, module.entry.root


def of_root(data):
    """The work of the result of a module."""
    module = hlo.read(data)
    return work(module, module.entry.root)


def gemm(epilogue="DEFAULT", alpha=1, beta=0):
    numbers = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
    return {
        "operation_queue_id": "0",
        "gemm_backend_config": {
            "alpha_real": alpha,
            "beta": beta,
            "dot_dimension_numbers": {**numbers, "lhs_batch_dimensions": [], "rhs_batch_dimensions": []},
            "epilogue": epilogue,
        },
    }


PRODUCT = 2 * 128 * 256 * 512
RESULT = 128 * 256


@pytest.mark.parametrize(
    ("target", "config", "vector", "functions"),
    [
        ("__cublas$gemm", gemm(), 0, {}),
        ("__cublas$lt$matmul", gemm(), 0, {}),
        ("__cublas$lt$matmul", gemm("BIAS"), RESULT, {}),
        ("__cublas$lt$matmul", gemm("BIAS_RELU"), 2 * RESULT, {}),
        ("__cublas$lt$matmul", gemm("BIAS_GELU_AUX"), 9 * RESULT, {"tanh": RESULT}),
        ("__cublas$lt$matmul", gemm(beta=1), RESULT, {}),
        ("__cublas$gemm", gemm(alpha=0.5, beta=0.5), 3 * RESULT, {}),
        ("__cublas$lt$matmul$f8", gemm(), 0, {}),
    ],
)
def test_a_product_by_cublas(target, config, vector, functions):
    module, instruction = call(
        target, "(f32[128,256], s8[33554432])", "f32[128,512]", "f32[512,256]", "f32[256]", config=config
    )
    done = work(module, instruction)
    assert done.flops == PRODUCT == 33_554_432
    assert done.vector_flops == vector
    assert done.functions == functions
    found, _, writes = cost(module, instruction)
    # the workspace is no traffic
    assert found.cost.bytes_read == 4 * (128 * 512 + 512 * 256 + 256)
    assert found.cost.bytes_written == 4 * RESULT
    assert len(writes) == 1
    assert (found.kind, found.op_class, found.dtype, found.output) == ("matmul", "contraction", "fp32", "fp32")
    assert found.shapes == "[128,512] x [512,256] x [256]"
    assert title(instruction) == target
    assert contractions(module, instruction) == [("", PRODUCT)]


def test_a_batched_product_by_cublas_in_the_older_form():
    """Dimension numbers at the top level, as before 2024."""
    numbers = {"lhs_contracting_dimensions": ["2"], "rhs_contracting_dimensions": ["1"],
               "lhs_batch_dimensions": ["0"], "rhs_batch_dimensions": ["0"]}  # fmt: skip
    config = {"alpha_real": 1, "beta": 0, "dot_dimension_numbers": numbers}
    module, instruction = call("__cublas$gemm", "bf16[3,4,5]", "bf16[3,4,6]", "bf16[3,6,5]", config=config)
    assert work(module, instruction).flops == 2 * 3 * 4 * 5 * 6


CONVOLUTION = ", window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=1"
IMAGE, FILTER, OUTPUT = "f32[2,16,16,8]", "f32[3,3,8,32]", "f32[2,8,8,32]"


@pytest.mark.parametrize(
    ("target", "result", "parameters"),
    [
        ("__cudnn$convForward", OUTPUT, (IMAGE, FILTER)),
        ("__cudnn$convBackwardInput", IMAGE, (OUTPUT, FILTER)),
        ("__cudnn$convBackwardFilter", FILTER, (IMAGE, OUTPUT)),
    ],
)
def test_convolutions_and_gradients_by_cudnn_pair_the_same_elements(target, result, parameters):
    config = {"cudnn_conv_backend_config": {"activation_mode": "kNone", "conv_result_scale": 1, "side_input_scale": 0}}
    module, instruction = call(target, f"({result}, u8[1024])", *parameters, config=config, attributes=CONVOLUTION)
    # per dimension: output o meets input 2o - 1 + tap, tap 0..2, of 16: all but the first tap of the first output
    pairs = 8 * 3 - 1
    done = work(module, instruction)
    assert done.flops == 2 * 2 * 8 * 32 * pairs**2
    assert done.vector_flops == 0
    found, _, _ = cost(module, instruction)
    assert (found.kind, found.op_class) == ("convolution", "contraction")


def test_a_convolution_by_cudnn_with_bias_and_activation():
    config = {"cudnn_conv_backend_config": {"activation_mode": "kRelu", "conv_result_scale": 1, "side_input_scale": 1}}
    module, instruction = call(
        "__cudnn$convBiasActivationForward", f"({OUTPUT}, u8[0])", IMAGE, FILTER, "f32[32]", OUTPUT, config=config,
        attributes=CONVOLUTION,
    )  # fmt: skip
    # bias, scale and add of the side input, max
    assert work(module, instruction).vector_flops == 4 * 2 * 8 * 8 * 32


def test_a_gradient_marked_by_kind_takes_the_places_in_which_its_window_fits():
    """A convolution instruction that is marked as an input gradient, in either way of writing it."""
    text = f"""HloModule m
ENTRY e {{
  g = {OUTPUT} parameter(0)
  w = {FILTER} parameter(1)
  ROOT c = {IMAGE} convolution(g, w), window={{size=3x3 pad=1_2x1_2 lhs_dilate=2x2}}, dim_labels=b01f_01oi->b01f
}}"""
    proto = hlo.HloModuleProto.FromString(hlo_oracle.proto(text))
    plain = of_root(proto.SerializeToString()).flops
    message = next(i for i in proto.computations[0].instructions if i.opcode == "convolution")
    message.conv_kind = 2
    assert of_root(proto.SerializeToString()).flops == plain
    for dimension in message.window.dimensions:  # now the forward convolution's window and numbers
        dimension.stride, dimension.base_dilation, dimension.padding_low, dimension.padding_high = 2, 1, 1, 1
    numbers = message.convolution_dimension_numbers
    numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension = 2, 3
    assert of_root(proto.SerializeToString()).flops == plain == 2 * 2 * 8 * 32 * 23**2


def attention(mask="NO_MASK", heads=4, window=0):
    return {
        "cudnn_fmha_backend_config": {
            "intermediate_tensor_shape": {"element_type": "BF16", "dimensions": ["2", str(heads), "16", "24"]},
            "fmha_scale": 0.125, "dropout_rate": 0, "mask_type": mask, "sliding_window_length": window,
            "is_flash_attention": True,
        }
    }  # fmt: skip


Q, K, V, OUT = "bf16[2,16,4,64]", "bf16[2,24,4,64]", "bf16[2,24,4,32]", "bf16[2,16,4,32]"


@pytest.mark.parametrize("spelling", ["fmha", "fhma"])
@pytest.mark.parametrize("mask", ["NO_MASK", "CAUSAL"])
def test_fused_attention_by_cudnn(spelling, mask):
    module, instruction = call(f"__cudnn${spelling}Softmax", f"({OUT}, u8[0])", Q, K, V, config=attention(mask))
    done = work(module, instruction)
    expected = formulas.attention(2, 4, 16, 24, 64, 32, causal=mask == "CAUSAL")
    assert done == expected
    assert done.flops == 2 * 2 * 4 * 16 * 24 * (64 + 32)
    # a causal mask leaves query i the keys 0..i: 16 * 17 / 2 of 16 * 24
    assert done.useful_flops == done.flops * ((136 / 384) if mask == "CAUSAL" else 1)
    found, _, _ = cost(module, instruction)
    assert (found.kind, found.op_class, found.dtype) == ("attention", "attention", "bf16")


def test_gradients_of_fused_attention_are_five_products_executed():
    stats, grads = "f32[2,4,16]", f"({Q}, {K}, {V}, u8[4096])"
    module, instruction = call(
        "__cudnn$fmhaSoftmaxBackward", grads, Q, K, V, stats, OUT, OUT, config=attention("CAUSAL")
    )
    done = work(module, instruction)
    assert done == formulas.attention_backward(2, 4, 16, 24, 64, 32, causal=True)
    assert done.flops == 2 * 8 * 16 * 24 * (3 * 64 + 2 * 32)
    found, _, writes = cost(module, instruction)
    assert found.kind == "attention_backward"
    assert len(writes) == 3


def test_grouped_query_attention_counts_query_heads():
    module, instruction = call(
        "__cudnn$fmhaSoftmax", f"({OUT}, u8[0])", Q, "bf16[2,24,1,64]", "bf16[2,24,1,32]", config=attention()
    )
    assert work(module, instruction).flops == 2 * 2 * 4 * 16 * 24 * (64 + 32)


def test_dropout_and_bias_in_attention():
    module, instruction = call(
        "__cudnn$fmhaScaleBiasSoftmaxDropout", f"({OUT}, u8[0])", Q, K, V, "bf16[1,4,16,24]", config=attention()
    )
    done, scores = work(module, instruction), 2 * 4 * 16 * 24
    assert done.functions == {"exp": scores, "random": scores}
    assert done.vector_flops == (5 + 1 + 2) * scores


def test_layer_norm_by_cudnn():
    config = {"cudnn_norm_backend_config": {"epsilon": 1e-5, "kind": "LAYER_FWD_INFER"}}
    module, instruction = call("__cudnn$norm", "(f32[8,64], u8[0])", "f32[8,64]", "f32[64]", "f32[64]", config=config)
    done = work(module, instruction)
    assert done.functions == {"rsqrt": 8}
    assert done.vector_flops == formulas.variance(512, 8).vector_flops + 4 * 512 + 8
    assert cost(module, instruction)[0].op_class == "normalisation"


def test_products_by_onednn():
    module, instruction = call("__onednn$matmul", "(f32[3,4,5], u8[64])", "f32[3,6,4]", "f32[3,6,5]")
    assert work(module, instruction).flops == 2 * 3 * 4 * 5 * 6
    module, instruction = call("__onednn$matmul", "f32[3,4,5]", "f32[3,4,6]", "f32[5,6]")
    assert work(module, instruction).flops == 2 * 3 * 4 * 5 * 6


@pytest.mark.parametrize(
    ("target", "op_class"),
    [
        ("__gpu$xla.gpu.triton", "other"),
        ("te_fused_attn_forward_ffi", "attention"),
        ("te_gemm_ffi", "contraction"),
        ("te_layernorm_forward_ffi", "normalisation"),
        ("te_scaled_softmax_forward_ffi", "softmax"),
        ("lapack_sgetrf_ffi", "other"),
    ],
)
def test_calls_without_a_rule_are_unknown_and_named(target, op_class):
    module, instruction = call(target, "f32[8]", "f32[8]")
    found, _, _ = cost(module, instruction)
    assert found.cost.flops is None
    assert found.cost.quality == "unknown"
    assert target in found.cost.note
    assert found.op_class == op_class
    assert found.cost.bytes == 64  # what it is given and gives is known


def test_a_triton_call_is_classed_by_the_name_of_its_kernel():
    module, instruction = call("__gpu$xla.gpu.triton", "f32[8]", "f32[8]", config={"name": "flash_attention_fwd"})
    found, _, _ = cost(module, instruction)
    assert found.op_class == "attention"
    assert found.cost.flops is None


def test_a_known_target_with_a_damaged_configuration_is_unknown():
    for config in ({}, {"gemm_backend_config": {"dot_dimension_numbers": {"lhs_contracting_dimensions": ["7"]}}}, [1]):
        module, instruction = call("__cublas$gemm", "f32[4,5]", "f32[4,6]", "f32[6,5]", config=config)
        done = work(module, instruction)
        assert done.flops is None
        assert "__cublas$gemm" in done.note


@pytest.mark.parametrize(
    ("target", "config"),
    [
        ("__cublas$gemm", {"gemm_backend_config": [1]}),
        ("__cublas$gemm", {"gemm_backend_config": {"dot_dimension_numbers": ["1"]}}),
        ("__cublas$gemm", {"gemm_backend_config": {**gemm()["gemm_backend_config"], "precision_config": ["HIGHEST"]}}),
        ("__cublas$gemm", {"gemm_backend_config": {**gemm()["gemm_backend_config"], "epilogue": {"BIAS": 1}}}),
        ("__cudnn$norm", {"cudnn_norm_backend_config": ["LAYER_FWD_INFER"]}),
        ("__cudnn$fmhaSoftmax", {"cudnn_fmha_backend_config": {"intermediate_tensor_shape": [1, 1, 4, 4]}}),
        ("__onednn$matmul", {"onednn_matmul_config": {"fusions": ["BIAS"]}}),
    ],
)
def test_a_list_where_a_table_belongs_makes_a_call_unknown(target, config):
    module, instruction = call(target, "f32[4,5]", "f32[4,6]", "f32[6,5]", "f32[6,5]", config=config)
    found, _, _ = cost(module, instruction)
    assert (found.cost.flops, found.cost.quality, found.arithmetic) == (None, "unknown", "")
    assert found.cost.bytes == 4 * (4 * 6 + 6 * 5 + 6 * 5 + 4 * 5)


def test_a_configuration_of_somebody_else_asks_for_no_precision():
    module, instruction = call("somebodys_gemm", "f32[4,5]", "f32[4,6]", "f32[6,5]", config=["gemm_backend_config"])
    assert asked_precision(instruction) == (0, 0)
    assert work(module, instruction).flops is None


@pytest.mark.parametrize("target", ["__cub$DeviceRadixSort", "TopK"])
def test_sorts_compare_and_count_no_flop(target):
    module, instruction = call(target, "(f32[64], s32[64], u8[4096])", "f32[64]", "s32[64]")
    done = work(module, instruction)
    assert (done.flops, done.vector_flops, done.quality) == (0, 0, "exact")
    assert sum(size for _, size in accesses(module, instruction).writes) == 512


def test_marks_are_views():
    module, instruction = call("Sharding", "f32[8]", "f32[8]")
    found, reads, writes = cost(module, instruction)
    assert found.view
    assert (reads, writes) == ((), ())


@pytest.mark.parametrize("backend", ["__triton_gemm", "__cudnn$fusion", "__ynn_fusion"])
def test_a_product_inside_a_custom_fusion(backend):
    config = json.dumps(json.dumps({"fusion_backend_config": {"kind": backend}}))
    module = hlo.read(
        hlo_oracle.proto(f"""HloModule m
f {{ a = s8[128,512] parameter(0)
  b = bf16[512,256] parameter(1)
  c = bf16[128,512] convert(a)
  ROOT d = bf16[128,256] dot(c, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}},
    metadata={{op_name="x/dot_general"}} }}
ENTRY e {{
  p = s8[128,512] parameter(0)
  q = bf16[512,256] parameter(1)
  ROOT gemm_fusion.7 = bf16[128,256] fusion(p, q), kind=kCustom, calls=f, backend_config={config}
}}""")
    )
    found, _, _ = cost(module, module.entry.root)
    assert found.cost.flops == PRODUCT
    assert found.cost.bytes == 128 * 512 + 2 * (512 * 256 + RESULT)
    assert (found.kind, found.op_class, found.dtype) == ("matmul", "contraction", "bf16")
    assert contractions(module, module.entry.root) == [("x/dot_general", PRODUCT)]
    assert title(module.entry.root) == "gemm_fusion"


def test_what_a_fused_call_worked_in_is_no_traffic():
    """A product of one layer's slice of the weights: XLA fuses the slice with the call, scratch memory included."""
    config = json.dumps(json.dumps(gemm()))
    module = hlo.read(
        hlo_oracle.proto(
            f"""HloModule m
            f {{
              p0 = bf16[128,512] parameter(0)
              p1 = bf16[4,512,256] parameter(1)
              at = s32[] parameter(2)
              zero = s32[] constant(0)
              one = bf16[1,512,256] dynamic-slice(p1, at, zero, zero), dynamic_slice_sizes={{1,512,256}}
              w = bf16[512,256] bitcast(one)
              call = (bf16[128,256], s8[4194304]) custom-call(p0, w), custom_call_target="__cublas$gemm",
                backend_config={config}
              result = bf16[128,256] get-tuple-element(call), index=0
              scratch = s8[4194304] get-tuple-element(call), index=1
              ROOT r = (bf16[128,256], s8[4194304]) tuple(result, scratch)
            }}
            ENTRY e {{
              p0 = bf16[128,512] parameter(0)
              p1 = bf16[4,512,256] parameter(1)
              at = s32[] parameter(2)
              ROOT r = (bf16[128,256], s8[4194304]) fusion(p0, p1, at), kind=kCustom, calls=f
            }}"""
        )
    )
    done = cost(module, module.entry.root)[0].cost
    assert done.flops == PRODUCT
    assert done.bytes_written == 2 * RESULT
    assert done.bytes_read == 2 * 128 * 512 + 2 * 512 * 256 + 4  # of the weights one layer of four


def with_precision(operands, algorithm="ALG_UNSET"):
    config = gemm()
    config["gemm_backend_config"]["precision_config"] = {"operand_precision": operands, "algorithm": algorithm}
    module, instruction = call("__cublas$gemm", "f32[128,256]", "f32[128,512]", "f32[512,256]", config=config)
    return cost(module, instruction)[0].arithmetic


def test_a_product_may_say_what_it_is_computed_in():
    """Of fp32 inputs a GPU makes TF32 unless the highest precision is asked for, on either side."""
    assert with_precision(["DEFAULT", "DEFAULT"]) == with_precision(["HIGH", "DEFAULT"]) == ""
    assert with_precision(["HIGHEST", "DEFAULT"]) == "ieee"
    assert with_precision(["DEFAULT", "DEFAULT"], "ALG_DOT_TF32_TF32_F32") == "tf32"
    assert with_precision(["HIGHEST", "HIGHEST"], "ALG_DOT_BF16_BF16_F32_X3") == "bf16"
    product = "f32[4,8] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for attribute, arithmetic in (
        ("", ""),
        (", operand_precision={highest,default}", "ieee"),
        (", operand_precision={high,high}", ""),
        (", algorithm=dot_f32_f32_f32", "ieee"),
        (", algorithm=dot_tf32_tf32_f32", "tf32"),
        (", algorithm=dot_bf16_bf16_f32_x3", "bf16"),
    ):
        text = f"p0 = f32[4,6] parameter(0)\n p1 = f32[6,8] parameter(1)\n ROOT r = {product}{attribute}\n"
        fused = f"HloModule m\nf {{ {text} }}\nENTRY e {{ p0 = f32[4,6] parameter(0)\n p1 = f32[6,8] parameter(1)\n"
        root = "ROOT r = f32[4,8] fusion(p0, p1), kind=kCustom, calls=f }"
        for data in (f"HloModule m\nENTRY e {{ {text} }}", fused + root):
            module = hlo.read(hlo_oracle.proto(data))
            assert cost(module, module.entry.root)[0].arithmetic == arithmetic


@pytest.mark.parametrize(
    ("target", "result", "parameters", "flops"),
    [
        ("cusolver_potrf_ffi", "(f32[3,6,6], s32[3])", ["f32[3,6,6]"], 3 * 6**3 / 3),
        ("__cusolver$cholesky", "(f32[6,6], s8[99], s32[1])", ["f32[6,6]"], 6**3 / 3),
        ("hipsolver_getrf_ffi", "(f32[6,4], s32[4], s32[])", ["f32[6,4]"], 6 * 4**2 - 4**3 / 3),
        ("cublas_getrf_batched_ffi", "(f32[3,6,6], s32[3,6], s32[3])", ["f32[3,6,6]"], 3 * 2 * 6**3 / 3),
        ("__cublas$triangularSolve", "(f32[6,4], s8[32])", ["f32[6,6]", "f32[6,4]"], 6 * 6 * 4),
        ("cusolver_orgqr_ffi", "f32[6,4]", ["f32[6,4]", "f32[4]"], 2 * 4**2 * (6 - 4 / 3)),
        ("lapack_dormqr_ffi", "f64[6,4]", ["f64[6,3]", "f64[3]", "f64[6,4]"], 4 * 6 * 4 * 3 - 2 * 4 * 3**2),
        # From the right: reflectors of 4 numbers.
        ("lapack_zunmqr_ffi", "c128[6,4]", ["c128[4,3]", "c128[3]", "c128[6,4]"], 4 * 6 * 4 * 3 - 2 * 6 * 3**2),
    ],
)
def test_direct_linear_algebra(target, result, parameters, flops):
    module, instruction = call(target, result, *parameters)
    costed = cost(module, instruction)[0]
    assert costed.cost.flops == pytest.approx(flops, rel=1e-12)
    assert (costed.cost.quality, costed.op_class, costed.kind) == ("assumed", "other", "linear algebra")
    # No product: it is asked for as it runs, and nothing is handed to it that was asked of others.
    assert contractions(module, instruction) == []


@pytest.mark.parametrize("target", ["cusolver_syevd_ffi", "lapack_sgesdd_ffi"])
def test_what_takes_rounds_that_nobody_knows_is_unknown(target):
    module, instruction = call(target, "(f32[6,6], f32[6], s32[])", "f32[6,6]")
    cost = work(module, instruction)
    assert (cost.quality, cost.note) == ("unknown", f"{target}: how much it computes depends on its numbers")
