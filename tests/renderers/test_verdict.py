"""The verdict on two runs: what its interval leaves out, and what stands over the account."""

from __future__ import annotations

import dataclasses

import handmade
import pytest
from msgspec.structs import replace

from roofline.comparison.account.account import account
from roofline.comparison.ranking import RankedPair
from roofline.comparison.terms import compare
from roofline.core.schema import Imported, Profile, Turns
from roofline.renderers.comparison import _account, _comparing

HINT = " To settle it, run both in turns: --again."


def run(factor: float = 1.0, *, rounds: bool = False, turns: bool = False, **changes: object) -> Profile:
    """The step of handmade.py, 12.5 ms, or that times a factor."""
    plain = handmade.profile()
    steps = tuple(step * factor for step in plain.wall.steps)
    took = Turns(token="1", medians=(steps[0],) * 3, waited=(None,) * 3, disturbed=(False,) * 3)
    wall = replace(plain.wall, steps=steps, processes=(steps,) * 2 * rounds, turns=(took,) * turns)
    return handmade.profile(**{"wall": wall, **changes})


def pair(a: Profile, b: Profile) -> RankedPair:
    comparison = compare(a, b)
    return RankedPair(("slow", "fast"), comparison, account(comparison))


@pytest.mark.parametrize(
    ("a", "b", "hint"),
    [
        ({}, {}, HINT),
        ({"rounds": True}, {"rounds": True}, HINT),  # not in turns
        ({}, {"imported": Imported()}, ""),
        ({"flags": ("in-process",)}, {}, ""),
        ({"turns": True}, {"turns": True}, ""),
        ({"turns": True}, {}, HINT),
    ],
)
def test_what_can_be_settled_is_said(a: dict[str, object], b: dict[str, object], hint: str) -> None:
    told = pair(run(**a), run(0.8, **b))  # type: ignore[arg-type]
    assert _comparing.verdict(told) == told.headline.text
    assert _comparing.verdict(told, advise=True) == _comparing.verdict(told) + hint


def test_a_run_is_lettered_once() -> None:
    told = pair(run(), run(0.8))
    assert [_comparing.lettered(told, side) for side in (0, 1)] == ["slow (A)", "fast (B)"]
    named = dataclasses.replace(told, names=("torch (A)", "torch (B)"))
    assert [_comparing.lettered(named, side) for side in (0, 1)] == ["torch (A)", "torch (B)"]


def test_the_heading_says_who_takes_longer_and_what_signs_mean() -> None:
    """As careful as the headline: in turns it is of the profiled ones, and of a busy machine neither is said."""
    apart = pair(run(), run(0.5))
    assert apart.headline.settled is None
    assert _account.heading(apart) == "Why slow (A) took 6.25 ms more than fast (B) (minus: B takes longer)"
    assert _account.heading(pair(run(0.5), run())).startswith("Why fast (B) took 6.25 ms more than slow (A)")
    in_turns = pair(run(turns=True), run(0.5, turns=True))
    assert in_turns.headline.settled
    assert _account.heading(in_turns).startswith("Why: in the profiled processes slow (A) took 6.25 ms more")
    for unsure in (pair(run(), run()), pair(run(flags=("contended",)), run(0.5))):
        assert _account.heading(unsure) == (
            "What the steps of slow (A) and fast (B) differ by (plus: A takes longer; minus: B does)"
        )
        assert _account.largest(unsure) == ""
    assert _account.largest(apart).startswith("The largest part, +")
