"""wall_A - wall_B as a sum that closes: on paper (handmade.py), for any two profiles (randomly.py)."""

from __future__ import annotations

import math

import handmade
import numpy as np
import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.analysis.bootstrap import Resamples, draw
from roofline.comparison.segments import Place, segments
from roofline.comparison.terms import Comparison, Side, Term, compare
from roofline.core.cost import Cost, unknown
from roofline.core.schema import Imported, Profile, Wall
from roofline.errors import InputError

US = 1e-6
KEY = tuple[str | None, str | None, str | None, str]


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * US, rel=1e-9, abs=1e-15)


def by_key(comparison: Comparison, view: str = "work") -> dict[KEY, Term]:
    return {(t.phase, t.block, t.op_class, t.kind): t for t in getattr(comparison, view).terms}


def spent(side: Side, place: Place) -> float:
    """Sum the share times of the segments at a place [s]."""
    return float(side.seconds[side.rows[place]].sum())


def timed(profile: Profile, row: int, own: int, wall: float) -> Profile:
    """The step with other own times of one op [µs] and another wall [µs]: each plain step longer by as much."""
    op = profile.ops[row]
    longer = (wall - 12_500) * US
    ops = (*profile.ops[:row], replace(op, own_ns=(own * 990, own * 1000, own * 1010)), *profile.ops[row + 1 :])
    return replace(
        profile,
        ops=ops,
        wall=replace(profile.wall, steps=tuple(step + longer for step in profile.wall.steps)),
        profiled=replace(
            profile.profiled,
            walls=tuple(step + longer for step in profile.profiled.walls),
            corrected=tuple(step + longer for step in profile.profiled.corrected),
        ),
    )


# ------------------------------------------------------------------------------------------------ on paper


def test_a_slower_kernel_is_loss_of_its_place() -> None:
    slow = timed(handmade.profile(), 4, own=3000, wall=13_500)  # softmax: 2000 -> 3000 us, and so the step
    comparison = compare(slow, handmade.profile())
    assert comparison.difference == near(1000)
    assert comparison.speedup == pytest.approx(13.5 / 12.5)
    moved = {key: term for key, term in by_key(comparison).items() if abs(term.seconds) > 1e-12}
    assert list(moved) == [("forward", "attention core", "softmax", "loss")]
    (term,) = moved.values()
    assert term.seconds == near(1000)
    assert term.ci95 is not None
    assert term.ci95[0] < 1000 * US < term.ci95[1]
    assert term.ci95[0] > 900 * US  # three profiled steps that lie 1 % of 2 or 3 ms apart, and halves of the plain ones


def test_more_time_between_ops_is_gap_by_cause() -> None:
    slow = handmade.profile()
    slow = replace(
        timed(slow, 0, own=400, wall=13_500),
        profiled=replace(
            timed(slow, 0, own=400, wall=13_500).profiled,
            idle=(2.8e-3, 2.8e-3, 2.8e-3),
            idle_causes={"synchronisation": 2.8e-3},
        ),
    )
    terms = by_key(compare(slow, handmade.profile()))
    # 2.8 ms after blocking calls, against 1.2 ms of dispatching and 0.6 of input
    assert terms[None, None, None, "gap.after blocking calls"].seconds == near(2800)
    assert terms[None, None, None, "gap.host dispatch"].seconds == near(-1200)
    assert terms[None, None, None, "gap.waiting for input"].seconds == near(-600)


def test_a_gap_without_causes_is_not_resolved() -> None:
    plain = handmade.profile()
    blind = replace(plain, profiled=replace(plain.profiled, idle=()))
    terms = by_key(compare(blind, plain))
    assert terms[None, None, None, "gap.not resolved"].seconds == near(1800)
    assert sum(t.seconds for t in terms.values()) == pytest.approx(0, abs=1e-12)


def test_fewer_bytes_are_less_work_under_the_memory_roof() -> None:
    plain = handmade.profile()
    table = list(plain.signatures)
    # 2 MB read and written -> 1 MB each: cold are the 1 MB read, of 1 MB written none (the cache holds 1 MB)
    table[0] = replace(
        table[0], cost=Cost(bytes_read=1e6, bytes_written=1e6), reads=(1e6,), writes=(1e6,), shapes="[2500, 1000] [250]"
    )
    half = replace(plain, signatures=tuple(table))
    terms = by_key(compare(plain, half))
    work = terms["forward", "embedding", "embedding", "floor.memory.work"].seconds
    ceiling = terms["forward", "embedding", "embedding", "floor.memory.ceiling"].seconds
    # before 3 MB / 10 GB/s = 300 us, now 1 MB / 10 GB/s = 100 us; the loss takes what the floor gives
    assert (work, ceiling) == (near(200), near(0))
    assert terms["forward", "embedding", "embedding", "loss"].seconds == near(-200)


def test_a_slower_device_is_the_ceiling_and_not_the_work() -> None:
    plain = handmade.profile()
    device = handmade.device(matrix_fp32=50e9)
    other = replace(plain, device=replace(device, name="Slow Device"))
    terms = by_key(compare(other, plain))
    # two products of 200 MFLOP: 2 * 4000 us against 2 * 2000 us, the same FLOPs
    assert terms["forward", "FFN", "contraction", "floor.compute.work"].seconds == near(0)
    assert terms["forward", "FFN", "contraction", "floor.compute.ceiling"].seconds == near(4000)


def test_floors_of_imports_are_split_by_the_roof_that_they_are_made_of() -> None:
    imported = replace(handmade.profile(), imported=Imported(files=("a.json",)))
    slow = replace(imported, device=replace(handmade.device(), name="Slow Launches"))
    slow = replace(
        slow,
        device=replace(slow.device, ceilings={**slow.device.ceilings, "launch.torch-eager": handmade.ceiling(10e-6)}),
    )
    terms = by_key(compare(slow, imported))
    # layer_norm: 8 kB fit the cache, so its floor is its launch, 10 us against 5 us for one launch each: all ceiling
    assert terms["forward", "norm + residual + dropout", "normalisation", "floor.launch.ceiling"].seconds == near(5)
    assert terms["forward", "norm + residual + dropout", "normalisation", "floor.launch.work"].seconds == near(0)
    assert sum(t.seconds for key, t in terms.items() if key[3].endswith(".ceiling")) > 0


def test_too_few_steps_have_no_interval() -> None:
    two = replace(handmade.profile(), wall=Wall(steps=(12.4e-3, 12.5e-3)))
    comparison = compare(two, handmade.profile())
    assert comparison.ci95 is None
    assert not comparison.resolved
    assert all(term.ci95 is None for term in comparison.work.terms)


def test_one_device_has_one_set_of_ceilings() -> None:
    plain = handmade.profile()
    drifted = replace(plain, device=handmade.device(matrix_fp32=50e9))
    comparison = compare(drifted, plain)  # the best that either has seen is the ceiling of both
    assert comparison.a.device.rate("matrix.fp32") == comparison.b.device.rate("matrix.fp32") == 100e9
    assert all(abs(term.seconds) < 1e-15 for term in comparison.work.terms)


def test_the_roof_that_changes_is_rebinding() -> None:
    plain = handmade.profile()
    table = list(plain.signatures)
    table[3] = replace(table[3], cost=replace(table[3].cost, functions={"exp": 10e6}))  # 10 M / 10 G/s = 1000 us
    heavy = replace(plain, signatures=tuple(table))
    terms = by_key(compare(heavy, plain))
    # compute 1000 us (exp) against memory 700 us
    assert terms["forward", "attention core", "softmax", "floor.rebinding"].seconds == near(300)
    assert terms["forward", "attention core", "softmax", "loss"].seconds == near(-300)


def test_a_floor_beside_unknown_work_is_not_more_work() -> None:
    plain = handmade.profile()
    table = list(plain.signatures)
    table[3] = replace(table[3], cost=unknown("no formula"))
    terms = by_key(compare(replace(plain, signatures=tuple(table)), plain))
    place = "forward", "attention core", "softmax"
    # B's softmax: floor 700 us of 2000; of A's 2000 us nothing is known
    assert {key[3]: term.seconds for key, term in terms.items() if key[:3] == place} == {
        "floor.unknown": near(-700),
        "loss": near(-1300),
        "uncosted": near(2000),
        "overlap": near(0),
    }


def test_a_fused_kernel_is_divided_by_what_its_parts_would_take_alone() -> None:
    plain = handmade.profile()
    # The softmax op becomes a kernel that fused gelu (0.8 MB) and the softmax (8 MB), all of it cold when alone:
    # 80 us and 800 us at 10 GB/s, so 1/11 and 10/11 of its 1950 us
    ops = list(plain.ops)
    ops[4] = replace(ops[4], constituents=(2, 3), places=((1, 0, 1), (3, 0, 2)))
    fused = replace(plain, ops=tuple(ops))
    comparison = compare(fused, plain)
    softmax = Place("forward", "attention core", "softmax")
    assert spent(comparison.work.a, Place("forward", "FFN", "pointwise")) == near(25 + 1950 / 11)
    assert spent(comparison.work.a, softmax) == near(1950 * 10 / 11)
    assert spent(comparison.kernel.a, softmax) == near(1950)
    assert sum(term.seconds for term in comparison.work.terms) == pytest.approx(0, abs=1e-12)


def test_a_fused_kernel_with_a_part_of_unknown_work_stays_whole() -> None:
    plain = handmade.profile()
    ops = list(plain.ops)
    ops[4] = replace(ops[4], constituents=(2, 4))
    assert len(segments(compare(replace(plain, ops=tuple(ops)), plain).a)) == len(ops)


def test_matched_ops_share_one_decision_about_the_cache() -> None:
    plain = handmade.profile()
    ops = list(plain.ops)
    # gelu reads a buffer that nothing wrote before: cold in this run, warm in the other
    ops[2] = replace(ops[2], reads=(40,))
    comparison = compare(replace(plain, ops=tuple(ops)), plain)
    assert list(comparison.a.table.cold) == list(comparison.b.table.cold)


def test_other_processes_widen_the_interval() -> None:
    plain = handmade.profile()
    apart = replace(plain, wall=replace(plain.wall, processes=((13e-3,) * 10, (12e-3,) * 10)))
    narrow, wide = compare(plain, handmade.profile(batch=5)).ci95, compare(apart, handmade.profile(batch=5)).ci95
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


def test_how_far_processes_lie_apart_is_told_by_those_of_both_runs() -> None:
    # 19.0 and 18.4 ms against 15.7 and 16.0 ms. Of A alone the interval of its median has 12.7 standard errors, of one
    # degree of freedom: 19.0 * 12.7 * ln(19.0 / 18.4) / 2 = 3.9 ms on either side. Of both together it has 4.30, of
    # sqrt((0.0321² + 0.0189²) / 4) = 0.0186: 1.1 ms.
    def run(one: float, other: float) -> Profile:
        wall = Wall(steps=(one * 1e-3,) * 10, processes=((other * 1e-3,) * 10,))
        return replace(handmade.profile(), wall=wall)

    def half(drawn: Resamples) -> float:
        low, high = np.percentile(drawn.wall, (2.5, 97.5))
        return float(high - low) / 2

    a, b = analyze(run(19.0, 18.4)), analyze(run(15.7, 16.0))
    assert half(draw(a)) == pytest.approx(3.9e-3, rel=0.15)
    assert half(draw(a, b)) == pytest.approx(1.1e-3, rel=0.15)
    assert half(draw(a, analyze(handmade.profile()))) == half(draw(a))
    low, high = compare(run(19.0, 18.4), run(15.7, 16.0)).ci95
    assert 0 < low < 2.6e-3 < high


def test_a_profile_without_times_is_refused() -> None:
    counted = replace(handmade.profile(), profiled=None, ops=())
    with pytest.raises(InputError, match=r"Profile 2 .* has no times of ops: profile it without --count-only"):
        compare(handmade.profile(), counted)


# ------------------------------------------------------------------------------------------------ for any two


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Profile, Profile]:
    """Two random profiles, of one device or of two."""
    a, b = draw(randomly.profiles()), draw(randomly.profiles())
    if draw(st.booleans()):
        b = replace(b, device=replace(b.device, name=a.device.name, kind=a.device.kind))
    return a, b


def scale(comparison: Comparison) -> float:
    return 1e-9 * (
        comparison.a.wall + comparison.b.wall + comparison.a.total.own_seconds + comparison.b.total.own_seconds
    )


@settings(deadline=None, max_examples=150)
@given(pairs())
def test_both_views_close(pair: tuple[Profile, Profile]) -> None:
    comparison = compare(*pair)
    for view in (comparison.work, comparison.kernel):
        assert abs(view.residual) <= scale(comparison)
        assert math.fsum(t.seconds for t in view.terms) == pytest.approx(
            comparison.difference, rel=1e-9, abs=scale(comparison)
        )
        assert all(math.isfinite(t.seconds) for t in view.terms)
        assert all(t.ci95 is None or t.ci95[0] <= t.ci95[1] for t in view.terms)


@settings(deadline=None, max_examples=100)
@given(pairs())
def test_swapping_the_runs_flips_every_sign(pair: tuple[Profile, Profile]) -> None:
    forth, back = compare(*pair), compare(*pair[::-1])
    limit = scale(forth)
    for view in ("work", "kernel"):
        there, here = by_key(forth, view), by_key(back, view)
        assert there.keys() == here.keys()
        for key, term in there.items():
            mirrored = here[key]
            assert term.seconds == pytest.approx(-mirrored.seconds, rel=1e-9, abs=limit)
            if term.ci95 is None or mirrored.ci95 is None:
                assert term.ci95 is mirrored.ci95
                continue
            assert np.allclose(term.ci95, (-mirrored.ci95[1], -mirrored.ci95[0]), rtol=1e-6, atol=1e3 * limit)


@settings(deadline=None, max_examples=60)
@given(randomly.profiles())
def test_a_run_does_not_differ_from_itself(profile: Profile) -> None:
    comparison = compare(profile, profile)
    assert comparison.difference == 0
    assert comparison.ci95 in (None, (0, 0))
    for view in (comparison.work, comparison.kernel):
        assert all(term.seconds == 0 and term.ci95 in (None, (0, 0)) for term in view.terms)


def test_one_step_is_enough_to_compare() -> None:
    short = replace(handmade.profile(), wall=Wall(steps=(12.5e-3,)))
    comparison = compare(short, handmade.profile())
    assert comparison.difference == near(0)
