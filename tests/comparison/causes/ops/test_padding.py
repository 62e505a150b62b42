"""Padded products. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import near, only
from synthetic import (
    LAYER,
    LINEAR,
    step,
)


def test_padded_products() -> None:
    big = change(LINEAR, flops=30e6, own=450, model_flops=20e6)
    padded = tuple(big if row == LINEAR else row for row in LAYER * 4)
    found = only(step(padded), step())
    assert found.rule == "padding"
    assert found.seconds == near(8 * 150)
