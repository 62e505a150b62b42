"""Ops of unknown work. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import near, only
from synthetic import (
    LAYER,
    step,
)


def test_work_that_is_not_known_is_no_less_work() -> None:
    replayed = tuple(change(row, name="graph", own=row.own / 2, known=False) if row.flops else row for row in LAYER * 4)
    found = only(step(), step(replayed))
    assert found.rule == "unknown-work"
    assert found.seconds == near(4 * 550)  # 3 * 300 us and 200 us per layer, half of it gone
