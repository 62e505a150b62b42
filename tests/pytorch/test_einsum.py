"""Einsum over indices of size one, which PyTorch multiplies: what is asked for is the product all the same."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Step
from roofline.pytorch import count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting


def asked(equation, *shapes):
    """(class, model FLOPs, FLOPs) of the ops that ask for some, in a step forward and backward."""
    factors = [torch.randn(shape, requires_grad=True) for shape in shapes]
    counted = count.count(
        counting.record(Step(run=lambda: torch.einsum(equation, *factors).sum().backward())), Engine()
    )
    costs = [(op.costed.op_class, op.costed.cost) for op in counted.ops]
    return [(op_class, cost.model_flops, cost.flops) for op_class, cost in costs if cost.model_flops]


@pytest.mark.parametrize("equation", ["bf,fhd->bhd", "bf,hdf->bhd", "bf,fhd"])
def test_a_product_over_one_index_of_size_one_and_its_gradients(equation):
    kernel = (3, 4, 1) if "hdf" in equation else (1, 3, 4)
    assert asked(equation, (2, 1), kernel) == [("contraction", 2 * 2 * 3 * 4, 0)] * 3


def test_heads_that_look_at_one_token_each():
    """2 samples of 1 token, 3 heads of width 4: the sum over that token."""
    assert asked("bhts,bshd->bthd", (2, 3, 1, 1), (2, 1, 3, 4)) == [("contraction", 2 * 2 * 3 * 4, 0)] * 3


def test_what_sums_over_no_index_of_both_is_no_product():
    assert asked("bf,bf->bf", (2, 1), (2, 1)) == []
    assert asked("b,f->bf", (2,), (3,)) == []


def test_a_product_over_a_longer_index_is_counted_once():
    assert asked("bf,fhd->bhd", (2, 5), (5, 3, 4)) == [("contraction", 2 * 2 * 5 * 3 * 4, 2 * 2 * 5 * 3 * 4)] * 3
