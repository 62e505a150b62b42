"""Random numbers in one run. Steps made by hand."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize(
    ("name", "backend", "advice"),
    [
        ("aten::bernoulli_", "torch", "turn dropout off where it is not wanted, or take a cheaper generator"),
        ("aten::randn", "torch", "draw fewer numbers, or in a smaller type; or take a cheaper generator"),
        ("random normal", "jax", "draw fewer numbers, or in a smaller type; or take a cheaper generator (jax.config"),
    ],
)
def test_numbers_that_drop_nothing_are_no_dropout(name: str, backend: str, advice: str) -> None:
    drawn = Row(name, "random", 100, bytes=0.1e6, block="FFN")
    runs = (step(rows, backend=backend, framework=backend) for rows in ((*LAYER, drawn) * 4, LAYER * 4))
    assert only(*runs).advice.startswith(advice)
