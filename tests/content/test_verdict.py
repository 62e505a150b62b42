"""The verdict on two runs: what its interval leaves out, and what stands over the account."""

from __future__ import annotations

import dataclasses

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze_timed
from roofline.comparison.account.account import account
from roofline.comparison.ranking import RankedPair, rank
from roofline.comparison.terms import compare
from roofline.content import wording
from roofline.content.comparison import account_rows, comparing
from roofline.core.schema import Imported, Profile, Turns

HINT = " For a factor that holds, run both alternately where they were measured: --again."


def run(factor: float = 1.0, *, rounds: bool = False, turns: bool = False, **changes: object) -> Profile:
    """The step of handmade.py, 12.5 ms, or that times a factor."""
    plain = handmade.profile()
    steps = tuple(step * factor for step in plain.wall.steps)
    took = Turns(token="1", medians=(steps[0],) * 4, waited=(None,) * 4, disturbed=(False,) * 4)
    wall = replace(plain.wall, steps=steps, processes=(steps,) * 2 * rounds, turns=(took,) * turns)
    return handmade.profile(**{"wall": wall, **changes})


def turned(recorded: float, in_turns: float) -> Profile:
    """That step, recorded with one factor and in turns with another."""
    once, then = run(recorded), run(in_turns, turns=True)
    return replace(once, wall=replace(once.wall, turns=then.wall.turns))


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
        ({"device": replace(handmade.device(), name="Another")}, {}, ""),
        ({"command": "roofline profile toy --backend torch --python=/other/python"}, {}, ""),
        ({"turns": True}, {"turns": True}, ""),
        ({"turns": True}, {}, HINT),
    ],
)
def test_what_can_be_settled_is_said(a: dict[str, object], b: dict[str, object], hint: str) -> None:
    told = pair(run(**a), run(0.8, **b))  # type: ignore[arg-type]
    assert comparing.verdict(told) == told.headline.text
    assert comparing.verdict(told, advise=True) == comparing.verdict(told) + hint
    assert comparing.can_repeat(told) == bool(hint)


def test_where_it_is_open_which_is_faster_turns_settle_it() -> None:
    told = pair(run(), run())
    assert told.headline.slower is None
    assert comparing.verdict(told, advise=True).endswith(HINT.replace("For a factor that holds", "To settle it"))


def test_a_run_is_lettered_once() -> None:
    told = pair(run(), run(0.8))
    assert [comparing.lettered(told, side) for side in (0, 1)] == ["slow (A)", "fast (B)"]
    named = dataclasses.replace(told, names=("torch (A)", "torch (B)"))
    assert [comparing.lettered(named, side) for side in (0, 1)] == ["torch (A)", "torch (B)"]


def test_the_heading_says_who_takes_longer_and_what_signs_mean() -> None:
    """As careful as the headline: in turns it is of the profiled ones, and of a busy machine neither is said."""
    apart = pair(run(), run(0.5))
    assert apart.headline.settled is None
    assert account_rows.heading(apart) == "Why slow (A) took 6.25 ms more than fast (B) (minus: B takes longer)"
    assert account_rows.heading(pair(run(0.5), run())).startswith("Why fast (B) took 6.25 ms more than slow (A)")
    in_turns = pair(run(turns=True), run(0.5, turns=True))
    assert in_turns.headline.settled
    assert account_rows.heading(in_turns).startswith(
        "Why slow (A) took 6.25 ms more than fast (B) in the two processes"
    )
    for unsure in (pair(run(), run()), pair(run(flags=("contended",)), run(0.5))):
        assert account_rows.heading(unsure) == (
            "What the steps of slow (A) and fast (B) differ by (plus: A takes longer; minus: B does)"
        )


def test_rows_of_processes_that_differ_the_other_way_are_no_reason() -> None:
    """The profiled process of A took longer, and in turns B did."""
    told = pair(turned(1.0, 1.0), turned(0.9, 2.0))
    assert told.headline.slower == 1
    assert account_rows.heading(told).startswith("What the steps of")


def test_rows_are_of_the_profiled_of_several_processes() -> None:
    told = pair(run(rounds=True), run(0.5, rounds=True))
    assert account_rows.heading(told).startswith("Why slow (A) took 6.25 ms more than fast (B) in the two")


def test_of_several_runs_the_headline_is_that_of_the_ends_and_disturbed_ones_are_said() -> None:
    names = {"backend": "torch"}, {"backend": "jax"}, {"backend": "keras-jax"}
    alone = rank([run(1.6, **names[0]), run(**names[1]), run(1.2, flags=("contended",), **names[2])])
    assert comparing.headline(alone).endswith(
        "of 3 runs jax took the least time as recorded, 12.5 ms a step, and torch the most, 20.0 ms. torch took 1.60x "
        "longer than jax in these two runs (20.0 against 12.5 ms a step, one process each). keras-jax was recorded on "
        "a busy machine, or with the clock held back."
    )
    busy = rank([run(1.6, flags=("contended",), **names[0]), run(**names[1]), run(1.2, **names[2])])
    assert comparing.headline(busy).endswith(
        "but other programs ran beside torch, which may be why they differ, in part or wholly."
    )
    turns = rank([run(1.6, turns=True, **names[0]), run(turns=True, **names[1]), run(1.2, turns=True, **names[2])])
    assert "torch is 1.60x slower than jax" in comparing.headline(turns)


def test_a_ceiling_is_named_once_however_many_ops_are_under_it(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyze_timed(handmade.profile(ops=handmade.OPS * 40))
    named: list[str] = []
    roof_name = wording.roof_name

    def counting(ceiling: str) -> str:
        named.append(ceiling)
        return roof_name(ceiling)

    monkeypatch.setattr(wording, "roof_name", counting)
    assert wording.roofs_of(analysis, "compute") == wording.roofs_of(analyze_timed(handmade.profile()), "compute")
    assert len(named) <= 2 * len(set(analysis.table.ceiling))
