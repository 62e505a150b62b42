"""What ops take longer after others. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import findings, near, only
from synthetic import (
    LAYER,
    NORM,
    Row,
    instead,
    step,
)


@pytest.mark.parametrize(
    ("later", "part", "text"),
    [
        (40, 40, "; 160 µs of it is what the ops right after them take longer."),
        (-40, -40, "; the ops right after them take 160 µs less, which is taken off."),
        (60, 60, "; 240 µs of it is what the ops right after them take longer."),
        (70, 0, "(aten::copy_)."),  # more than half of what the copy costs, 65 µs, has another cause
        (5, 5, "(aten::copy_)."),  # a twenty-seventh is not told
    ],
)
def test_an_op_after_those_that_one_run_has_is_part_of_them(later: float, part: float, text: str) -> None:
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6, block="FFN")
    *before, linear, gelu = LAYER
    found = only(step((*before, copy, change(linear, own=linear.own + later), gelu) * 4), step())
    assert found.rule == "layout"
    assert found.seconds == near(4 * (120 + 10 + part))
    assert "4 launches that move 1.60 MB" in found.text  # what the products move is not of it
    assert found.text.endswith(text)


def test_an_op_that_follows_two_causes_is_of_neither() -> None:
    """Before each norm A copies and B adds up; the norm takes 20 µs longer in A."""
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6)
    other = Row("aten::cumsum", "reduction", 100, bytes=0.9e6)
    a = step(instead(LAYER * 4, NORM.name, (copy, change(NORM, own=50))))
    b = step(instead(LAYER * 4, NORM.name, (other, NORM)))
    told = {finding.rule: finding.seconds for finding in findings(a, b)}
    assert told == {"layout": near(4 * (120 + 10)), "more-work": near(-4 * (100 + 10))}
