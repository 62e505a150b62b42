"""Mixtures of experts: 3 tokens of 4 numbers, 2 of 6 experts each, 5 numbers inside."""

from __future__ import annotations

import pytest

from roofline.costs import custom, experts
from roofline.costs.calls import Call, Tensor
from roofline.costs.context import Context, Kernel

BF16, FP8, BYTE = "c10::BFloat16", "c10::Float8_e4m3fnuz", "unsigned char"


def tensor(*shape, dtype=BF16):
    return Tensor(shape, None, dtype, device="")


def costed(name, *inputs, context=None):
    formula = custom.entry(f"vllm::{name}")
    if context is None:
        return custom.cost(Call(name, None, inputs), *custom.registered(f"vllm::{name}"))
    return custom.cost(Call(name, None, inputs), lambda *given: formula.function(context, *given), formula.op_class)


def test_experts_that_are_touched():
    assert experts.touched(6, 2, 1) == pytest.approx(2)  # one token: as many as it picks
    assert experts.touched(6, 2, 2) == pytest.approx(2 + 2 * 4 / 6)  # of the second's picks a third is picked already
    assert experts.touched(6, 6, 1) == experts.touched(6, 6, 9) == 6
    assert experts.touched(6, 2, 1000) == pytest.approx(6)


@pytest.mark.parametrize("dtype", [BF16, FP8])
def test_weights_as_arguments(dtype):
    x, w1, w2 = tensor(3, 4), tensor(6, 10, 4, dtype=dtype), tensor(6, 4, 5, dtype=dtype)
    picks = tensor(3, 2, dtype="float"), tensor(3, 2, dtype="int")
    found = costed("inplace_fused_experts", x, w1, w2, *picks, "silu", False)
    # 6 rows go through 4 x 10 and 5 x 4 numbers of their expert.
    assert found.cost.flops == 2 * 6 * (40 + 20)
    touched = 6 * (1 - (4 / 6) ** 3)
    width = 2 if dtype == BF16 else 1
    assert found.cost.bytes_read == pytest.approx(touched * 60 * width + 24 + 24 + 24)
    assert found.cost.bytes_written == 24
    assert (found.dtype, found.cost.quality) == ("bf16" if dtype == BF16 else "fp8", "assumed")


def test_weights_that_are_packed_stay_unknown():
    picks = tensor(3, 2, dtype="float"), tensor(3, 2, dtype="int")
    packed = costed("inplace_fused_experts", tensor(3, 4), tensor(6, 10, 2, dtype=BYTE), tensor(6, 4, 5), *picks)
    assert packed.cost.quality == "unknown"
    whole = tensor(6, 10, 4, dtype="signed char"), tensor(6, 4, 5, dtype="signed char")
    assert costed("inplace_fused_experts", tensor(3, 4), *whole, *picks).cost.quality == "unknown"


def view(*shape, dtype=BF16):
    return Call("aten::view", None, (tensor(*shape, dtype=dtype), None))


def forward(*inside, number=6):
    return costed("moe_forward", tensor(3, 4), tensor(3, number), None, context=Context(inside))


NAME = "_matmul_ogs_NNT_bf16x{}xmxfp4_16x128x256x1"


def layer(kind):
    return (
        view(3, 4),
        view(6, 2, 12, dtype=BYTE),
        Kernel(f"{NAME.format(kind)}_swiglu"),
        view(6, 6),
        view(6, 3, 4, dtype=BYTE),
        Kernel(NAME.format(kind)),
        Kernel("_finalize_matmul_scatter_bf16"),
    )


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", "bf16"), ("fp8e4nv", "fp8"), ("mxfp8e4nv", "fp8")])
def test_weights_in_the_views_before_a_product(kind, dtype):
    # 6 rows go through 4 x 12 numbers of their expert, and the 6 that the gate leaves through 6 x 4: two lie in a byte.
    found = forward(*layer(kind))
    cost = found.cost
    assert cost.flops == 2 * 6 * (4 * 12 + 6 * 4)
    touched = 6 * (1 - (4 / 6) ** 3)
    # Half a byte per number, and a byte per 32 of them; the tokens in and out, and 6 numbers per token to pick by.
    assert cost.bytes_read == pytest.approx(touched * (48 + 24) * (0.5 + 1 / 32) + 24 + 36)
    assert cost.bytes_written == 24
    assert cost.functions == {"sigmoid": 36}
    assert cost.vector_flops == 2 * 36 + 6 * 4 + 3 * 4  # the gate; weighted by 6 x 4 products, 3 x 4 sums of two
    assert (found.dtype, cost.quality) == (dtype, "assumed")


def test_experts_of_a_layer_on_other_devices_take_their_share_of_the_picks():
    # Of 24 experts 6 are here, and so 1.5 of 6 picks: no token has two rows to sum, in the mean.
    cost = forward(*layer("bf16"), number=24).cost
    assert (cost.flops, cost.functions) == (2 * 1.5 * (4 * 12 + 6 * 4), {"sigmoid": 9})
    assert cost.vector_flops == 2 * 9 + 1.5 * 4


def test_what_the_views_do_not_tell_stays_unknown():
    assert forward(Kernel("some_other_gemm")).cost.quality == "unknown"
    odd = forward(view(3, 4), view(6, 3, 12, dtype=BYTE), Kernel(NAME.format("bf16")))
    assert (odd.cost.quality, odd.cost.bytes) == ("unknown", None)
    assert forward(Kernel(NAME.format("bf16"))).cost.quality == "unknown"
    several = forward(*layer("bf16")[:3], view(6, 6), view(5, 3, 4, dtype=BYTE), Kernel(NAME.format("bf16")))
    assert several.cost.quality == "unknown"


def aiter(name, *inputs):
    return custom.cost(Call(f"aiter::{name}", None, inputs), *custom.registered(f"aiter::{name}"))


def sorted_picks(number):
    """Tokens, weights, experts and their number, in blocks of 32: 3 x 2 picks, and a block for each expert, less 2."""
    length = 3 * 2 + number * 32 - 2
    blocks = -(-length // 32)
    return [
        tensor(size, dtype=kind) for size, kind in ((length, "int"), (length, "float"), (blocks, "int"), (2, "int"))
    ]


def stages(lists):
    """The two stages: their lists are those of one op without the weights of picks."""
    x, w1, w2 = tensor(3, 4, dtype=FP8), tensor(6, 10, 4, dtype=FP8), tensor(6, 4, 5, dtype=FP8)
    tokens, _, expert, valid = lists
    first = aiter("ck_moe_stage1", x, w1, w2, tokens, expert, valid, tensor(3, 2, 5), 2)
    second = aiter("ck_moe_stage2", tensor(3, 2, 5, dtype=FP8), w1, w2, tokens, expert, valid, tensor(3, 4), 2)
    return first, second, aiter("fmoe_g1u1", tensor(3, 4), x, w1, w2, *lists, 2)


def test_experts_of_aiter_in_one_op_and_in_two():
    # 3 tokens of 4 numbers pick 2 of 6 experts: 6 rows through 4 x 10 and 5 x 4 numbers of fp8.
    x, w1, w2 = tensor(3, 4, dtype=FP8), tensor(6, 10, 4, dtype=FP8), tensor(6, 4, 5, dtype=FP8)
    lists = sorted_picks(6)
    touched = 6 * (1 - (4 / 6) ** 3)
    whole = aiter("fmoe_g1u1", tensor(3, 4), x, w1, w2, *lists, 2)
    assert (whole.cost.flops, whole.cost.functions, whole.dtype) == (2 * 6 * 60, {"sigmoid": 30}, "fp8")
    assert (whole.cost.bytes_read, whole.cost.bytes_written) == (pytest.approx(touched * 60 + 12), 24)
    first, second, _ = stages(lists)
    assert first.cost.flops + second.cost.flops == whole.cost.flops
    assert first.cost.vector_flops + second.cost.vector_flops == whole.cost.vector_flops
    assert (first.cost.bytes_written, second.cost.bytes_read) == (60, pytest.approx(touched * 20 + 30))
    # Without the number of picks, or with packed weights, nothing is known.
    assert aiter("fmoe_g1u1", tensor(3, 4), x, w1, w2, *lists, None).cost.quality == "unknown"
    assert aiter("fmoe_g1u1", tensor(3, 4), x, tensor(6, 10, 2, dtype=FP8), w2, *lists, 2).cost.quality == "unknown"


def test_experts_on_other_devices_take_their_share_of_the_picks():
    x, w1, w2 = tensor(3, 4), tensor(6, 10, 4), tensor(6, 4, 5)
    picks = tensor(3, 2, dtype="float"), tensor(3, 2, dtype="int")
    # vLLM maps all 24 experts to the 6 here: of 6 picks 1.5 are of these.
    flags = ("silu", False, False, False, False, False, None, False)
    found = costed("inplace_fused_experts", x, w1, w2, *picks, *flags, 24, tensor(24, dtype="int"), None)
    assert found.cost.flops == 2 * 1.5 * (40 + 20)
    touched = 6 * (1 - (22 / 24) ** 3)  # a token picks 2 of 24
    assert found.cost.bytes_read == pytest.approx(touched * 60 * 2 + 24 + 24 + 24)
    assert found.cost.vector_flops == 1.5 * 4  # in the mean no token has two rows here
    # Without a map all are here.
    assert costed("inplace_fused_experts", x, w1, w2, *picks, *flags, 6, None).cost.flops == 2 * 6 * 60
    for op in stages(sorted_picks(24)):
        assert op.cost.quality == "assumed"
    first, second, whole = stages(sorted_picks(24))
    assert first.cost.flops + second.cost.flops == whole.cost.flops == 2 * 1.5 * 60
    assert (first.cost.bytes_written, whole.cost.functions) == (60 / 4, {"sigmoid": 7.5})
    # Lists of other lengths, as of fewer experts than there are here, tell nothing.
    for lists in (sorted_picks(5), [tensor(9, dtype="int")] * 4, [None] * 4):
        assert {op.cost.quality for op in stages(lists)} == {"unknown"}


@pytest.mark.parametrize(("name", "behind"), [("inplace", ()), ("outplace", (False,))])
def test_experts_of_sglang_are_all_here_where_none_is_filtered(name, behind):
    picks = tensor(3, 2, dtype="float"), tensor(3, 2, dtype="int")
    given = tensor(3, 4), tensor(6, 10, 4), tensor(6, 4, 5), *picks, None, None, "silu", True, *[False] * 6
    scales = [None] * 7  # of weights and inputs, and the shape of their blocks

    def found(*filtered):
        inputs = *given, *scales, *behind, None, None, None, *filtered
        call = Call(f"sglang::{name}_fused_experts", None, inputs)
        return custom.cost(call, *custom.registered(call.name)).cost

    assert found(False, None).flops == 2 * 6 * 60
    assert found(True, None).quality == found().quality == "unknown"
