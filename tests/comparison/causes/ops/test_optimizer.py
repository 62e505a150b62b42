"""The optimizer's update in one kernel and in many. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import found, near, only
from synthetic import (
    LAYER,
    Row,
    step,
)


def test_the_optimizer_op_by_op() -> None:
    fused = (Row("aten::_fused_adamw_", "pointwise", 300, bytes=4e6, phase="optimizer", block="head"),)
    single = tuple(Row("aten::mul_", "pointwise", 40, bytes=1e6, phase="optimizer", block="head") for _ in range(20))
    found = only(step((*LAYER * 4, *single)), step((*LAYER * 4, *fused)))
    assert found.rule == "optimizer"
    assert found.seconds == near(20 * 40 - 300 + 19 * 10)


def test_the_same_optimizer_slower_is_no_other_optimizer() -> None:
    update = Row("aten::_fused_adamw_", "optimizer", 1000, bytes=10e6, phase="optimizer", block="head")
    runs = [step((*LAYER * 4, change(update, own=own)), mode="train") for own in (1200, 4000)]
    faster = step((*LAYER * 4, update), mode="train")
    assert found(runs[0], faster) == {}  # in one process each, a fifth is what processes differ by
    assert {rule: one.seconds for rule, one in found(runs[1], faster).items()} == {"efficiency": near(3000)}
