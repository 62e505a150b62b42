"""What is known of a gap. Steps made by hand."""

from __future__ import annotations

import pytest
from explained import found
from synthetic import (
    step,
)


def test_what_a_step_compiles_anew_is_compilation() -> None:
    """Of the 2 ms in which A runs no op more, it compiles for 1.5."""
    conditions = [{"compiling_seconds_per_step": seconds} for seconds in (1.5e-3, 0.0)]
    a, b = step(backend="jax", extra_gap=2000, conditions=conditions[0]), step(backend="jax", conditions=conditions[1])
    told = found(a, b)
    assert told["compilation"].seconds == pytest.approx(1.5e-3)
    assert told["host-idle"].seconds == pytest.approx(0.5e-3)
    assert "compilation" not in found(a, step(backend="jax"))  # nobody counted it in B


@pytest.mark.parametrize(
    ("framework", "sentence", "advised"),
    [("jax", "more on compiling inside", "jit the function once"), ("torch", "guards and compiling", "graph breaks")],
)
def test_compiling_is_told_in_the_words_of_the_framework(framework: str, sentence: str, advised: str) -> None:
    of = {"backend": framework, "framework": framework}
    slow = step(extra_gap=2000, conditions={"compiling_seconds_per_step": 1.5e-3}, **of)
    told = found(slow, step(conditions={"compiling_seconds_per_step": 0.0}, **of))["compilation"]
    assert sentence in told.text
    assert advised in told.advice
