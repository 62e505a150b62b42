"""Say whether work that only one of two runs does can explain why they differ, by the rules of docs/comparing.md."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from roofline.analysis.bootstrap import Interval, draw, interval
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.parity.difference import Both, Pair
from roofline.comparison.parity.known_work import Work


def more_work(work: Work, works: Collection[Work]) -> Both:
    """Return at most how long each run needs for what only it is asked for in a phase, of all `works` [s].

    It takes the same share of a step as of its FLOPs, or the time of these products themselves, if that is more.
    """
    upper = [0.0, 0.0]
    for run, side, other_side in ((work.pair.a, 0, 1), (work.pair.b, 1, 0)):
        flops_difference = work.flops[side] - work.flops[other_side]
        if flops_difference <= 0:
            continue
        flops = seconds = 0.0  # of products that the other run executes less often
        for product, (times, product_seconds) in work.executed[side].items():
            surplus = max(0, times - work.executed[other_side].get(product, (0, 0.0))[0])
            flops += surplus * product.flops
            seconds += product_seconds * surplus / times
        product_bound = seconds * min(1.0, flops_difference / flops) if flops else 0.0
        step_flops = sum(phase.flops[side] for phase in works)
        upper[side] = max(run.wall * flops_difference / step_flops, product_bound)
    return upper[0], upper[1]


def can_explain(pair: Pair, *seconds: Both) -> bool:
    """Return whether taking some times of each run off [s] changes which run is known to be slower."""
    a, b = (sum(run) for run in zip(*seconds, strict=True))
    intervals = _intervals(pair)
    slower = _slower(intervals, 0.0)
    return any(_slower(intervals, shift) != slower for shift in (a, -b, a - b))


def unknown_can_explain(pair: Pair, seconds: Both) -> bool:
    """Return whether ops of unknown work, of so much time in each run [s], can be why one is slower, if one is."""
    wall_difference = pair.a.wall - pair.b.wall
    return 0 not in _slower(_intervals(pair), 0.0) and seconds[0 if wall_difference > 0 else 1] >= abs(wall_difference)


def _intervals(pair: Pair) -> tuple[Interval, Interval]:
    """Return intervals of wall_A - wall_B [s]: 95 % by its steps, and what processes of one step differ by."""
    wall_difference = pair.a.wall - pair.b.wall
    a, b = draw(pair.a, pair.b), draw(pair.b, pair.a)
    processes = PROCESSES * math.hypot(pair.a.wall, pair.b.wall)
    return interval(a.wall - b.wall, a, b, kind="wall") or (wall_difference, wall_difference), (
        wall_difference - processes,
        wall_difference + processes,
    )


def _slower(intervals: Sequence[Interval], shift: float) -> tuple[int, ...]:
    """Return by each interval which run is slower with a time taken off [s]: 1 for A, -1 for B, 0 if it holds 0."""
    return tuple(1 if low > shift else -1 if high < shift else 0 for low, high in intervals)
