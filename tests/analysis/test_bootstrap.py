"""What has an interval: walls by plain steps, gaps by all, ops by these or by calls of one op within a step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.analysis.analysis import analyze
from roofline.analysis.bootstrap import draw, interval
from roofline.comparison.headline import headline
from roofline.comparison.terms import compare
from roofline.core.schema import Profile, Wall
from roofline.projection.project import project


def one_profiled(profile: Profile, owns: tuple[int, ...] | None = None, **changes: object) -> Profile:
    """The profile with its second profiled step alone; owns: of its ops [µs], else as they are."""
    times = [1000 * own for own in owns] if owns else [op.own_ns[1] for op in profile.ops]
    ops = tuple(replace(op, own_ns=(own,)) for op, own in zip(profile.ops, times, strict=True))
    old = profile.profiled
    assert old is not None
    profiled = replace(old, walls=old.walls[:1], corrected=old.corrected[:1], idle=(old.idle or (0.0,))[:1])
    return replace(profile, ops=ops, profiled=profiled, **changes)


def test_a_verdict_of_the_walls_needs_plain_steps_only() -> None:
    """A hundred plain steps of 1.50 ms and of 264 µs, one profiled step each."""
    rng = np.random.default_rng(0)
    runs = []
    for wall in (1.50e-3, 264e-6):
        steps = tuple((wall * (1 + 0.02 * rng.standard_normal(100))).tolist())
        runs.append(one_profiled(step((Row("aten::mm", "contraction", 200),)), wall=Wall(steps=steps)))
    comparison = compare(*runs)
    assert comparison.ci95 == pytest.approx((1.236e-3, 1.236e-3), rel=0.02)
    assert comparison.resolved
    assert not comparison.has_intervals
    assert headline(comparison, ("A", "B")).slower == 0
    assert draw(comparison.a).known == {"wall"}


def test_calls_within_a_step_tell_how_far_ops_lie_apart() -> None:
    """Four calls of one op of 90, 100, 100 and 110 µs: their deviation is the root of 200 / 3 µs², 8.16 %."""
    calls = one_profiled(step((Row("aten::mm", "contraction", 100),) * 4), (90, 100, 100, 110))
    calls = replace(calls, wall=Wall(steps=calls.wall.steps[:1]))
    analysis = analyze(calls)
    drawn = draw(analysis)
    assert drawn.known == {"ops"}
    own = np.asarray([op.own_ns for op in calls.ops]) * 1e-9
    low, high = interval(drawn.times(own), drawn, kind="ops") or (0.0, 0.0)
    spread = math.exp(1.96 * (200 / 3) ** 0.5 / 100)
    assert (low, high) == pytest.approx((analysis.scale * 400e-6 / spread, analysis.scale * 400e-6 * spread), rel=0.02)
    assert interval(drawn.wall, drawn, kind="wall") is None
    assert interval(drawn.gap, drawn, kind="gap") is None
    # Projected onto its own device, where no kernel is another, the step lies apart by that, once: nine of ten draws.
    spread = math.exp(1.645 * (200 / 3) ** 0.5 / 100)
    ends = analysis.scale * 400e-6 / spread, analysis.scale * 400e-6 * spread
    assert project(analysis, analysis.device).total.interval == pytest.approx(ends, rel=0.02)


def test_times_from_op_to_op_tell_how_far_a_step_of_a_trace_lies_apart() -> None:
    """Five calls begin 200, 220, 180 and 200 µs after each other: 800 µs, and four deviations of 16.3 µs."""
    calls = one_profiled(step((Row("aten::mm", "contraction", 100),) * 5), (90, 100, 100, 110, 100))
    starts = (0, 200_000, 420_000, 600_000, 800_000)
    ops = tuple(replace(op, start_ns=at) for op, at in zip(calls.ops, starts, strict=True))
    trace = replace(calls, ops=ops, wall=Wall(steps=(900e-6,), source="profiled"))
    drawn = draw(analyze(trace))
    assert drawn.known == {"wall", "ops", "gap"}
    low, high = interval(drawn.wall, drawn, kind="wall") or (0.0, 0.0)
    spread = math.exp(1.96 * 2 * (800 / 3) ** 0.5 / 800)
    assert (low, high) == pytest.approx((900e-6 / spread, 900e-6 * spread), rel=0.01)
    # Another one that takes twice as long for its ops and between them: which is slower, and why, can be told.
    slow = tuple(replace(op, own_ns=(2 * op.own_ns[0],), start_ns=2 * op.start_ns) for op in ops)
    device = replace(trace.device, name="Another GPU")
    comparison = compare(replace(trace, ops=slow, wall=replace(trace.wall, steps=(1800e-6,)), device=device), trace)
    verdict = headline(comparison, ("A", "B"))
    assert (verdict.slower, verdict.settled) == (0, None)
    assert verdict.ci95 is not None
    assert 0 < verdict.ci95[0] < 900e-6 < verdict.ci95[1]
    of_ops = [term for term in comparison.work.terms if term.op_class == "contraction" and term.kind == "loss"]
    assert of_ops
    assert all(term.ci95 is not None and term.ci95[0] > 0 for term in of_ops)


def test_a_process_that_is_slower_is_so_in_its_ops_and_its_gap() -> None:
    """Plain steps of 1.4 ms, then of 1.6: each draw is another process, and its ops add up to its busy time."""
    analysis = analyze(step(LAYER, wall=Wall(steps=(1.4e-3,) * 5 + (1.6e-3,) * 5)))
    drawn = draw(analysis)
    assert np.ptp(drawn.scale) > 0.1
    own = np.asarray([op.own_ns for op in analysis.profile.ops]) * 1e-9
    assert drawn.busy == pytest.approx(drawn.times(own))


def test_ops_that_do_not_repeat_tell_nothing() -> None:
    twice = one_profiled(step((Row("aten::mm", "contraction", 100), Row("aten::add", "pointwise", 9)) * 2))
    assert draw(analyze(twice)).known == {"wall"}
    equal = one_profiled(step((Row("aten::mm", "contraction", 100),) * 4), (100, 100, 100, 100))
    assert draw(analyze(equal)).known == {"wall"}
    assert draw(analyze(step(LAYER))).known == {"wall", "ops", "gap"}
