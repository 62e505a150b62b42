"""Fused attention that is called and that no fused kernel carries out, recorded live: what keeps the kernel out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import scaled_dot_product_attention

from roofline.core.cost import NOT_FUSED
from roofline.core.step import Step
from roofline.costs.calls import Call, Tensor
from roofline.pytorch import count, unfused_attention
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting

#: One batch, two heads, eight tokens, heads of 16.
SHAPE = 1, 2, 8, 16


def plain(*shape: int) -> torch.Tensor:
    return torch.randn(shape or SHAPE)


def strided() -> torch.Tensor:
    """Of the same shape, with neighbours of the last dimension eight elements apart."""
    return torch.randn(1, 2, 16, 8).transpose(-1, -2)


def noted(run: Callable[[], object]) -> list[tuple[str, str]]:
    """(class, note) of the products and attention ops of a step."""
    counted = count.count(counting.record(Step(run=run)), Engine())
    return [
        (op.costed.op_class, op.costed.cost.note)
        for op in counted.ops
        if op.costed.op_class in ("contraction", "attention")
    ]


@pytest.mark.parametrize(
    ("tensors", "options", "why"),
    [
        ((plain(), strided(), plain()), {}, "the strided last dimension of key"),
        ((plain(), strided(), strided()), {}, "the strided last dimension of key and value"),
        ((strided(), strided(), strided()), {}, "the strided last dimension of query, key and value"),
        ((plain(), plain(), plain()), {"dropout_p": 0.1}, "its dropout, which the kernel of a CPU lacks"),
        ((plain(), plain(), plain(1, 2, 8, 24)), {}, "the other width of value's heads"),
        ((plain(2, 8, 16),) * 3, {}, "tensors of 3 dimensions instead of 4"),
        ((plain(), plain(), plain()), {"attn_mask": torch.zeros(2, 8, 8)}, "a mask of 3 dimensions"),
        # That a gradient is asked of the mask is not recorded.
        ((plain(), plain(), plain()), {"attn_mask": torch.zeros(8, 8, requires_grad=True)}, ""),
    ],
)
def test_what_keeps_the_fused_kernel_out(
    tensors: tuple[torch.Tensor, ...], options: dict[str, object], why: str
) -> None:
    """QK^T and PV, and what PyTorch itself says of the same arguments: it chooses no fused kernel."""
    assert torch._fused_sdp_choice(*tensors, **options) == 0
    note = f"{NOT_FUSED}: {why}" if why else NOT_FUSED
    found = noted(lambda: scaled_dot_product_attention(*tensors, **options))
    assert found == [("contraction", note)] * 2


@pytest.mark.parametrize(
    ("tensors", "options"),
    [
        ((plain(), plain(), plain()), {}),
        # One element: there is no neighbour in the last dimension.
        ((plain(1, 2, 8, 1).transpose(-1, -2).contiguous().transpose(-1, -2),) * 3, {}),
        ((plain(), plain(), plain()), {"attn_mask": torch.zeros(8, 8).t()}),
    ],
)
def test_what_a_fused_kernel_takes_has_no_note(tensors: tuple[torch.Tensor, ...], options: dict[str, object]) -> None:
    assert noted(lambda: scaled_dot_product_attention(*tensors, **options)) == [("attention", "")]


def test_attention_that_is_written_out_has_no_note() -> None:
    query, key, value = plain(), strided(), plain()
    found = noted(lambda: (query @ key.transpose(-1, -2)).softmax(-1) @ value)
    assert found == [("contraction", "")] * 2


def test_a_gpu_takes_other_arguments() -> None:
    """Its kernels drop out; what is strided none of them takes."""
    one, apart = (Tensor(SHAPE, stride, "float", device="cuda:0") for stride in ((256, 128, 16, 1), (256, 128, 1, 8)))
    sdpa = "aten::scaled_dot_product_attention"
    assert unfused_attention.obstacle(Call(sdpa, "", (one, one, one, None, 0.1))) == ""
    assert "of value" in unfused_attention.obstacle(Call(sdpa, "", (one, one, apart, None, 0.1)))


def test_arguments_that_were_not_recorded_are_no_obstacle() -> None:
    assert unfused_attention.obstacle(Call("aten::scaled_dot_product_attention", None, ())) == ""
