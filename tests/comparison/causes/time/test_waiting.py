"""What is known of a gap. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import found, near
from msgspec.structs import replace
from synthetic import LAYER, step


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


def test_a_pause_that_both_runs_have_is_no_input_of_the_one_that_waits_for_it_there() -> None:
    """Before the first op both hosts take 460 us, and one waits 2 ms for input in the same idle time: 2.46 ms of it.

    The time before each of the other 27 ops is 10 us.
    """
    cuda = replace(step().device, kind="cuda")
    rows = [change(row, host=(0.0, 10.0)) for row in LAYER * 4]
    share = 2460 / (2460 + 27 * 10)
    waits = step(
        (change(rows[0], host=(0.0, 2460.0)), *rows[1:]),
        device=cuda,
        causes={"host dispatch": 1 - share, "data input": share},
    )
    told = found(waits, step((change(rows[0], host=(0.0, 460.0)), *rows[1:]), device=cuda))
    assert {rule: each.seconds for rule, each in told.items()} == {"data-input": near(2000)}
