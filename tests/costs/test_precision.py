"""What a contraction computes in, and by what evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.core.cost import Cost
from roofline.core.device import Ceiling, Device
from roofline.core.schema import Signature
from roofline.costs.precision import SWITCH, certain, contraction, settled

TF32 = [
    "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_stage3_warpsize2x2x1_tensor16x8x8_execute_kernel",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_nt_align4>(cutlass_80::Params)",
    "ampere_sgemm_tf32_128x64_nn",
    "sm90_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x32",
]
IEEE = [
    "ampere_sgemm_128x64_nn",
    "volta_sgemm_32x128_nt",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(cutlass_80_simt_sgemm::Params)",
    "cutlass_simt_sfprop_optimized_128x128_8x2_nhwc_align1",
    "volta_scudnn_128x64_relu_interior_nn_v1",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel",
    # Products with a vector: no tensor cores, also where the switch allows them.
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>",
    "void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024>",
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float, false, true>",
]
SILENT = ["void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float>", "some_kernel", ""]


@pytest.mark.parametrize("kernel", TF32)
def test_a_kernel_of_tf32_proves_it_whatever_the_switch_says(kernel):
    found = contraction("fp32", "fp32", [kernel], "ieee")
    assert (found.inputs, found.arithmetic, found.accumulate, found.output) == ("fp32", "tf32", "fp32", "fp32")
    assert found.evidence == f"kernel {kernel[:80]}"


@pytest.mark.parametrize("kernel", IEEE)
def test_a_kernel_of_ieee_arithmetic_proves_it_whatever_the_switch_says(kernel):
    found = contraction("fp32", "fp32", [kernel], "tf32")
    assert (found.arithmetic, found.evidence) == ("fp32", f"kernel {kernel[:80]}")


@pytest.mark.parametrize(
    ("switch", "arithmetic"), [("ieee", "fp32"), ("none", "fp32"), ("tf32", "tf32"), ("bf16", "bf16")]
)
@pytest.mark.parametrize("kernels", [[], SILENT])
def test_without_proof_the_switch_says_it(switch, arithmetic, kernels):
    found = contraction("fp32", "fp32", kernels, switch)
    assert found.arithmetic == arithmetic
    assert found.evidence == f"switch: float32 precision {switch!r}"


@pytest.mark.parametrize("switch", [None, "", "medium"])
def test_without_proof_and_switch_it_is_unknown(switch):
    found = contraction("fp32", "fp32", SILENT, switch)
    assert (found.arithmetic, found.evidence) == (None, "unknown")


@pytest.mark.parametrize(
    ("inputs", "accumulate"),
    [
        ("bf16", "fp32"),
        ("fp16", "fp32"),
        ("fp8", "fp32"),
        ("int8", "int32"),
        ("fp64", "fp64"),
        ("complex64", "complex64"),
    ],
)
@pytest.mark.parametrize("switch", ["ieee", "tf32", None])
def test_other_types_are_computed_in_as_they_are(inputs, accumulate, switch):
    """The switches are about float32 alone, and so are TF32 kernels."""
    found = contraction(inputs, inputs, TF32, switch)
    assert (found.arithmetic, found.accumulate, found.evidence) == (inputs, accumulate, "type of the inputs")


def test_the_output_may_be_of_another_type():
    assert contraction("int8", "int32", [], None).output == "int32"
    assert contraction("bf16", None, [], None).output is None


def test_unknown_inputs_have_no_precision():
    assert contraction(None, "fp32", TF32, "tf32") is None


def test_of_several_kernels_the_one_that_proves_something_counts():
    # Beside the product there may be a reduction of its parts (split k), whose name says nothing.
    found = contraction("fp32", "fp32", ["splitKreduce_kernel", TF32[0]], "ieee")
    assert found.arithmetic == "tf32"


@given(st.sampled_from([None, "fp32", "bf16", "fp64"]), st.lists(st.text()), st.none() | st.text())
def test_arithmetic_is_never_made_up(inputs, kernels, switch):
    found = contraction(inputs, None, kernels, switch)
    if inputs is None:
        assert found is None
    elif found.evidence == "unknown":
        assert found.arithmetic is None
    elif found.evidence.startswith("switch"):
        assert found.arithmetic == SWITCH[switch]
    else:
        assert found.arithmetic in ("tf32", inputs)


def device(kind, **matrix):
    """A device with these matrix peaks [TFLOP/s]."""
    ceilings = {f"matrix.{name}": Ceiling(value=value * 1e12, source="made") for name, value in matrix.items()}
    return Device(name="made", kind=kind, ceilings=ceilings)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (device("cuda", fp32=15.7, fp16=125), "fp32"),  # a V100
        (device("rocm", fp32=47.9, bf16=191), "fp32"),  # an MI250X: no TF32, and bf16 of fp32 inputs on CPUs only
        (device("cuda", fp32=19.5, tf32=156), None),  # an A100
        (device("cpu", fp32=1.0), "fp32"),
        (device("cpu", fp32=1.0, bf16=0.5), "fp32"),  # bf16 emulated
        (device("cpu", fp32=1.0, bf16=8.0), None),  # AMX: a setting away
        (device("cuda"), None),
        (device("cuda", fp16=125), None),
    ],
)
def test_a_device_without_lower_arithmetic_makes_fp32_certain(where, expected):
    unknown = contraction("fp32", "fp32", SILENT, None)
    found = certain(unknown, where)
    assert found.arithmetic == expected
    assert found.evidence == ("made has no faster arithmetic for fp32 inputs" if expected else "unknown")


@pytest.mark.parametrize("known", [contraction("fp32", None, TF32, None), contraction("bf16", None, [], None), None])
def test_what_is_known_already_stays(known):
    assert certain(known, device("cuda", fp32=15.7)) is known


def test_rows_of_a_profile_are_settled_by_their_device():
    unknown = contraction("fp32", "fp32", SILENT, None)
    row = Signature(
        name="aten::mm",
        kind="matmul",
        op_class="contraction",
        shapes="",
        dtype="fp32",
        cost=Cost(flops=8.0),
        precision=unknown,
    )
    assert settled(row, device("cuda", fp32=19.5, tf32=156)) is row
    found = settled(row, device("cuda", fp32=15.7))
    assert (found.precision.arithmetic, found.name, found.cost) == ("fp32", row.name, row.cost)
