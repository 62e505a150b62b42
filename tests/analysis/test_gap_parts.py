"""Gaps of steps made by hand, split: 28 ops of 4800 µs (synthetic.py), the host 2 µs in the framework and 8 in Python
before each, so that dispatching takes 280 µs. All times in µs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.analysis.analysis import analyze_timed
from roofline.analysis.gap_parts import AFTER, COMPILING, DISPATCHING, FOR_INPUT, OUTSIDE, READING, SLEEPING
from roofline.core.schema import Profile

ROWS = tuple(change(row, host=(2.0, 8.0)) for row in LAYER * 4)


def before(number: int, framework: float, python: float, rows: tuple[Row, ...] = ROWS) -> tuple[Row, ...]:
    """The ops, with another time of the host before one of them."""
    return (*rows[:number], change(rows[number], host=(framework, python)), *rows[number + 1 :])


def split(profile: Profile) -> dict[str, float]:
    """Dispatching and the other parts of the gap, without those of nothing."""
    analysis = analyze_timed(profile)
    parts = {DISPATCHING: float(analysis.host_time.dispatch.sum()), **analysis.host_time.parts}
    assert sum(parts.values()) == pytest.approx(analysis.gap, abs=1e-12)
    return {name: seconds * 1e6 for name, seconds in parts.items() if seconds}


def with_input(idle: float, data: float, kind: str, rows: tuple[Row, ...] = ROWS) -> Profile:
    """A step of 5400 µs, with so much idle time in its profiled steps, and so much of that before data."""
    profile = step(rows, extra_gap=600 - sum(sum(row.host or ()) for row in rows))
    assert profile.profiled is not None
    profiled = replace(
        profile.profiled,
        idle=(idle * 1e-6,) * 3,
        corrected=((4800 + idle) * 1e-6,) * 3,
        idle_causes={"host dispatch": (idle - data) * 1e-6, "data input": data * 1e-6},
    )
    return replace(profile, profiled=profiled, device=replace(profile.device, kind=kind))


def test_a_profiler_stretches_waits_and_all_else_of_a_host_without_a_queue_alike() -> None:
    # Profiled steps take 6000, plain ones 0.9 times that. Of 1200 idle 500 are input, 280 dispatching; 420 follow.
    assert split(with_input(1200, 500, "cpu")) == pytest.approx(
        {DISPATCHING: 0.9 * 280, FOR_INPUT: 0.9 * 500, AFTER: 0.9 * 420}
    )


def test_beside_a_queue_waits_come_first() -> None:
    # The gap is 600: 500 of input, which are before op 3, and 100 for 280 of dispatching and 420 after the last op.
    profile = with_input(1200, 500, "cuda", before(3, 502, 8))
    assert split(profile) == pytest.approx({DISPATCHING: 40, FOR_INPUT: 500, AFTER: 60})


def test_input_is_no_time_outside_of_the_framework() -> None:
    # 600 idle: 280 dispatching, 50 of input, 270 after the last op, none of which is the input's.
    assert split(with_input(600, 50, "cpu")) == pytest.approx({DISPATCHING: 280, FOR_INPUT: 50, AFTER: 270})


def test_what_follows_the_last_op_is_a_part_of_its_own() -> None:
    # 100 more in Python before op 5 than the 8 of the median op, and 300 after the last.
    assert split(step(before(5, 2, 108), extra_gap=300)) == pytest.approx({DISPATCHING: 280, OUTSIDE: 100, AFTER: 300})


def test_sleep_is_before_ops_and_after_the_last_in_proportion() -> None:
    profile = step(before(5, 2, 108), extra_gap=300, conditions={"asleep_seconds_per_step": 200e-6})
    assert split(profile) == pytest.approx({DISPATCHING: 280, SLEEPING: 200, OUTSIDE: 50, AFTER: 150})


@pytest.mark.parametrize(
    ("compiling", "left"),
    [
        # In the framework 1000 before op 3, which the median op does not take; in Python 100 before op 5; 300 after.
        (700, {DISPATCHING: 280 + 500, OUTSIDE: 50, AFTER: 150}),
        # More than can be told from dispatching is not known: it leaves no more room, and dispatching is scaled to it.
        (1400, {DISPATCHING: 280}),
        (1500, {DISPATCHING: 180}),
    ],
)
def test_compiling_is_no_dispatching(compiling: float, left: Mapping[str, float]) -> None:
    rows = before(3, 1002, 8, before(5, 2, 108))
    profile = step(rows, extra_gap=300, conditions={"compiling_seconds_per_step": compiling * 1e-6})
    assert split(profile) == pytest.approx({COMPILING: compiling, **left}, abs=1e-3)


def test_what_a_host_beside_a_queue_waits_for_is_no_dispatching() -> None:
    # In the framework 1000 before op 3, 800 of them for input; in Python 100 before op 5.
    causes = {"host dispatch": 580 / 1380, "data input": 800 / 1380}
    profile = step(before(3, 1002, 8, before(5, 2, 108)), causes=causes)
    profile = replace(profile, device=replace(profile.device, kind="cuda"))
    assert split(profile) == pytest.approx({DISPATCHING: 280 + 200, FOR_INPUT: 800, OUTSIDE: 100}, abs=1e-3)


@pytest.mark.parametrize(
    ("kernels", "part"),
    [
        (("Memcpy DtoH (Device -> Pageable)",), READING),
        (("MemcpyD2H",), READING),
        (("Memcpy HtoD (Pageable -> Device)",), OUTSIDE),
        # An op that needs a number of its own work on the host, such as nonzero, computes.
        (("DeviceReduceKernel", "Memcpy DtoH (Device -> Pinned)"), OUTSIDE),
        ((), OUTSIDE),
    ],
)
def test_the_host_reads_results_before_a_copy_to_the_host(kernels: tuple[str, ...], part: str) -> None:
    profile = step(before(27, 2, 608))
    copied = replace(profile.ops[27], kernels=tuple((number, 1000) for number in range(len(kernels))))
    profile = replace(profile, ops=(*profile.ops[:27], copied), kernels=kernels)
    profile = replace(profile, device=replace(profile.device, kind="cuda"))
    assert split(profile) == pytest.approx({DISPATCHING: 280, part: 600})
