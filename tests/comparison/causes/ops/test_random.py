"""Random numbers in one run. Steps made by hand."""

from __future__ import annotations

from explained import near, only
from synthetic import (
    LAYER,
    Row,
    step,
)


def test_random_numbers_in_one_run() -> None:
    dropout = Row("aten::bernoulli_", "random", 100, bytes=0.1e6, block="FFN")
    found = only(step((*LAYER, dropout) * 4), step())
    assert found.rule == "random"
    assert found.seconds == near(4 * 110)
