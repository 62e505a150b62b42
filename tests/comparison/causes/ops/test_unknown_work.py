"""Ops of unknown work. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import found, near, only
from synthetic import LAYER, Row, step


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
