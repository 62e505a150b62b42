"""The verdict on two runs: what its interval leaves out, and what stands over the account."""

from __future__ import annotations

import dataclasses

import handmade
import pytest
from msgspec.structs import replace

from roofline.comparison.account.account import account
from roofline.comparison.ranking import RankedPair
from roofline.comparison.terms import compare
from roofline.core.schema import Imported, Profile
from roofline.renderers.comparison import _account, _comparing

HINT = "; --rounds 3 measures between processes"


def run(factor: float = 1.0, *, rounds: bool = False, **changes: object) -> Profile:
    """The step of handmade.py, 12.5 ms, or that times a factor."""
    plain = handmade.profile()
    steps = tuple(step * factor for step in plain.wall.steps)
    return handmade.profile(**{"wall": replace(plain.wall, steps=steps, processes=(steps,) * 2 * rounds), **changes})


def pair(a: Profile, b: Profile) -> RankedPair:
    comparison = compare(a, b)
    return RankedPair(("slow", "fast"), comparison, account(comparison))


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


def test_a_run_is_lettered_once() -> None:
    told = pair(run(), run(0.8))
    assert [_comparing.lettered(told, side) for side in (0, 1)] == ["slow (A)", "fast (B)"]
    named = dataclasses.replace(told, names=("torch (A)", "torch (B)"))
    assert [_comparing.lettered(named, side) for side in (0, 1)] == ["torch (A)", "torch (B)"]


def test_the_heading_says_who_takes_longer_and_whose_time_is_positive() -> None:
    assert _account.heading(pair(run(), run(0.8))) == (
        "Why slow (A) takes 2.50 ms more than fast (B) (+ is A's time, - is B's)"
    )
    assert _account.heading(pair(run(0.8), run())).startswith("Why fast (B) takes 2.50 ms more than slow (A)")
    same = _account.heading(pair(run(), run()))
    assert same == "What the steps of slow (A) and fast (B) differ by (+ is A's time, - is B's)"
