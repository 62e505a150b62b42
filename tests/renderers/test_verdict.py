"""The verdict on two runs: what its interval leaves out, and causes that exceed the difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import handmade
import pytest
from msgspec.structs import replace

from roofline.comparison.causes.findings import Finding
from roofline.comparison.ranking import RankedPair
from roofline.comparison.terms import compare
from roofline.core.schema import Imported, Profile
from roofline.renderers.comparison import _comparing

HINT = "; --rounds 3 measures between processes"


def run(factor: float = 1.0, *, rounds: bool = False, **changes: object) -> Profile:
    """The step of handmade.py, 12.5 ms, or that times a factor."""
    plain = handmade.profile()
    steps = tuple(step * factor for step in plain.wall.steps)
    return handmade.profile(**{"wall": replace(plain.wall, steps=steps, processes=(steps,) * 2 * rounds), **changes})


def pair(a: Profile, b: Profile, findings: Sequence[Finding] = ()) -> RankedPair:
    return RankedPair(("slow", "fast"), compare(a, b), tuple(findings))


def finding(label: str, seconds: float) -> Finding:
    return Finding(rule="fusion", seconds=seconds, ci95=(seconds, seconds), label=label, text="", advice="", terms=())


IMPORTED = {"imported": Imported()}


@pytest.mark.parametrize(
    ("a", "b", "within", "hint"),
    [
        ({}, {}, " within one process each", HINT),
        ({"rounds": True}, {}, " within one process of fast", HINT),
        ({}, {"rounds": True}, " within one process of slow", HINT),
        ({"rounds": True}, {"rounds": True}, " ms)", ""),
        (IMPORTED, IMPORTED, " within one run each", ""),
        ({}, IMPORTED, " within one run each", ""),
        ({"flags": ("in-process",)}, {}, " within one process each", ""),
    ],
)
def test_what_the_interval_leaves_out(a: dict[str, object], b: dict[str, object], within: str, hint: str) -> None:
    told = pair(run(**a), run(0.8, **b))  # type: ignore[arg-type]
    assert within in _comparing.verdict(told)
    assert HINT not in _comparing.verdict(told)
    assert _comparing.verdict(told, advise=True) == _comparing.verdict(told).removesuffix(").") + f"{hint})."


def test_what_is_not_resolved_asks_for_no_more_rounds() -> None:
    told = _comparing.verdict(pair(run(), run()), advise=True)
    assert told.endswith(" within one process each).")


@pytest.mark.parametrize(
    ("parts", "told"),
    [  # the steps are 12.5 and 10 ms
        ((2.0e-3,), "Of 2.50 ms, 2.00 ms is cause 0; "),
        ((1.5e-3, 1.0e-3), "Of 2.50 ms, 1.50 ms is cause 0, 1.00 ms is cause 1; "),
        # 2.40 + 0.60 - 0.50 = 2.50: what goes the other way is of the other run
        (
            (2.4e-3, -0.5e-3),
            "slow loses 2.40 ms through cause 0 and 600 µs elsewhere, while fast loses 500 µs through cause 1: "
            "2.40 + 0.60 − 0.50 = 2.50 ms; ",
        ),
        ((3.0e-3,), "slow loses 3.00 ms through cause 0, while fast loses 500 µs elsewhere: 3.00 − 0.50 = 2.50 ms; "),
        (
            (3.0e-3, -0.5e-3),
            "slow loses 3.00 ms through cause 0, while fast loses 500 µs through cause 1: 3.00 − 0.50 = 2.50 ms; ",
        ),
        (
            (3.0e-3, -0.2e-3),
            "slow loses 3.00 ms through cause 0, while fast loses 200 µs through cause 1 and 300 µs elsewhere: "
            "3.00 − 0.20 − 0.30 = 2.50 ms; ",
        ),
        # Rounded apart it would be 1.67 + 1.67 - 0.83 = 2.50, and 2.51 is what that adds up to.
        (
            (1.666e-3, 1.666e-3),
            "slow loses 1.67 ms through cause 0 and 1.67 ms through cause 1, while fast loses 840 µs elsewhere: "
            "1.67 + 1.67 − 0.84 = 2.50 ms; ",
        ),
    ],
)
def test_causes_add_up_to_the_difference(parts: Sequence[float], told: str) -> None:
    causes = [finding(f"cause {number}", seconds) for number, seconds in enumerate(parts)]
    assert _comparing.causes(pair(run(), run(0.8), causes)).startswith(told)
    turned = [replace(cause, seconds=-cause.seconds) for cause in causes]
    # The other way round the second run is the slow one.
    names = {"slow": "fast", "fast": "slow"}
    swapped = " ".join(names.get(word, word) for word in told.split(" "))
    assert _comparing.causes(pair(run(0.8), run(), turned)).startswith(swapped)


def test_a_run_is_lettered_once() -> None:
    told = pair(run(), run(0.8))
    assert _comparing.sign(told) == "A − B: what is positive, slow (A) spends and fast (B) does not"
    named = dataclasses.replace(told, names=("torch (A)", "torch (B)"))
    assert _comparing.sign(named) == "A − B: what is positive, torch (A) spends and torch (B) does not"
