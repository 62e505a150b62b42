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


def test_as_many_updates_that_move_as_much_are_no_other_optimizer() -> None:
    update = Row("aten::_fused_adamw_", "optimizer", 1000, bytes=10e6, phase="optimizer", block="head")
    renamed = change(update, name="aten::adam_fused", own=4000, bytes=11e6)
    runs = [step((*LAYER * 4, one), mode="train") for one in (renamed, update)]
    assert "optimizer" not in found(*runs)
    # Half as many bytes again are another one.
    more = step((*LAYER * 4, change(renamed, bytes=15e6)), mode="train")
    assert found(more, runs[1])["optimizer"].seconds == near(3000)
    # As many launches that move twice as much are not to be fused.
    dense = step((*LAYER * 4, change(renamed, bytes=20e6)), mode="train")
    assert "sparse gradients" in found(dense, runs[1])["optimizer"].advice


def test_what_to_write_is_said_in_the_words_of_the_program() -> None:
    single = tuple(Row("multiply", "pointwise", 40, bytes=1e6, phase="optimizer", block="head") for _ in range(20))
    fused = (Row("fusion", "pointwise", 300, bytes=4e6, phase="optimizer", block="head"),)
    told = [
        only(step((*LAYER * 4, *single), **of), step((*LAYER * 4, *fused), **of)).advice
        for of in ({"framework": "torch"}, {"framework": "torch", "written_in": "keras"})
    ]
    assert "fused=True" in told[0]
    assert "fused=True" not in told[1]
    assert "jit_compile" in told[1]


def test_the_same_optimizer_slower_is_no_other_optimizer() -> None:
    update = Row("aten::_fused_adamw_", "optimizer", 1000, bytes=10e6, phase="optimizer", block="head")
    runs = [step((*LAYER * 4, change(update, own=own)), mode="train") for own in (1200, 4000)]
    faster = step((*LAYER * 4, update), mode="train")
    assert found(runs[0], faster) == {}  # in one process each, a fifth is what processes differ by
    assert {rule: one.seconds for rule, one in found(runs[1], faster).items()} == {"efficiency": near(3000)}


def test_an_update_in_few_kernels_is_not_to_be_put_into_fewer() -> None:
    # 1000 us in one kernel against 20 x (20 + 10) us
    update = Row("fused", "optimizer", 1000, bytes=10e6, phase="optimizer", block="head")
    single = tuple(Row("multiply", "optimizer", 20, bytes=0.5e6, phase="optimizer", block="head") for _ in range(20))
    told = only(step((*LAYER * 4, update)), step((*LAYER * 4, *single)))
    assert (told.rule, told.seconds) == ("optimizer", near(1000 + 10 - 20 * 30))
    assert told.advice.startswith("see what its kernels attain")
