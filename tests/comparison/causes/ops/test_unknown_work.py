"""Ops of unknown work. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import found, near, only
from synthetic import GELU, LAYER, LINEAR, Row, step


def test_what_a_compiler_cannot_fuse_across_an_op_goes_with_it() -> None:
    """A norm in an op of somebody's own, 200 µs, and a fused rest of 100 behind it: without it one kernel of 150.

    Of runs that a compiler fuses; where little of the time there is the op's, the rest is no part of it.
    """
    rest, whole = (
        Row(
            f"fused_{parts[0]}",
            "pointwise",
            own,
            bytes=0.8e6,
            block="FFN",
            parts=tuple(change(GELU, name=p) for p in parts),
        )
        for parts, own in ((["tanh"], 100), (["mean", "pow"], 150))
    )
    for own, seconds in ((200, {"unknown-work": near(4 * (200 + 100 - 150 + 10))}), (20, None)):
        foreign = Row("mine::norm", "other", own, known=False, block="FFN")
        told = found(
            step((LINEAR, foreign, rest) * 4, backend="torch-compile"),
            step((LINEAR, whole) * 4, backend="torch-compile"),
        )
        if seconds is not None:
            assert {rule: finding.seconds for rule, finding in told.items()} == seconds
        else:
            assert told["unknown-work"].seconds == near(4 * (20 + 10))


def test_work_that_is_not_known_is_no_less_work() -> None:
    replayed = tuple(change(row, name="graph", own=row.own / 2, known=False) if row.flops else row for row in LAYER * 4)
    found = only(step(), step(replayed))
    assert found.rule == "unknown-work"
    assert found.seconds == near(4 * 550)  # 3 * 300 us and 200 us per layer, half of it gone


def test_a_formula_is_asked_for() -> None:
    other = step((*LAYER * 4, Row("mylib::scan", "other", 900, known=False)))
    assert "register a formula" in only(other, step()).advice


def test_a_known_op_in_the_place_of_unknown_work_is_named() -> None:
    """Behind each layer 400 µs of an own op against 800 of a known one, which needs no formula."""
    known = Row("aten::silu", "pointwise", 800, bytes=1e6, block="FFN")
    dark = Row("mylib::act", "other", 400, known=False, block="FFN")
    one = found(step((*LAYER, known) * 4), step((*LAYER, dark) * 4))["unknown-work"]
    assert one.seconds == near(4 * 400)
    assert "more on aten::silu: 4 launches, in whose place torch (B) has ops of unknown work (mylib::act)" in one.text
    assert "register a formula for mylib::act" in one.advice
