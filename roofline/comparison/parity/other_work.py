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
    most = [0.0, 0.0]
    for run, more, less in ((work.pair.a, 0, 1), (work.pair.b, 1, 0)):
        apart = work.flops[more] - work.flops[less]
        if apart <= 0:
            continue
        flops = seconds = 0.0  # of products that the other run executes less often
        for product, (times, taken) in work.executed[more].items():
            surplus = max(0, times - work.executed[less].get(product, (0, 0.0))[0])
            flops += surplus * product.flops
            seconds += taken * surplus / times
        own = seconds * min(1.0, apart / flops) if flops else 0.0
        whole = sum(phase.flops[more] for phase in works)
        most[more] = max(run.wall * apart / whole, own)
    return most[0], most[1]


def can_explain(pair: Pair, *seconds: Both) -> bool:
    """Whether the runs say something else about which is slower without some times of each [s]."""
    a, b = (sum(run) for run in zip(*seconds, strict=True))
    intervals = _intervals(pair)
    said = _slower(intervals, 0.0)
    return any(_slower(intervals, taken) != said for taken in (a, -b, a - b))


def unknown_can_explain(pair: Pair, seconds: Both) -> bool:
    """Whether ops of unknown work, of so much time in each run [s], can be why one is slower, if one is."""
    apart = pair.a.wall - pair.b.wall
    return 0 not in _slower(_intervals(pair), 0.0) and seconds[0 if apart > 0 else 1] >= abs(apart)


def _intervals(pair: Pair) -> tuple[Interval, Interval]:
    """Return intervals of wall_A - wall_B [s]: 95 % by its steps, and what processes of one step differ by."""
    apart = pair.a.wall - pair.b.wall
    a, b = draw(pair.a, pair.b), draw(pair.b, pair.a)
    processes = PROCESSES * math.hypot(pair.a.wall, pair.b.wall)
    return interval(a.wall - b.wall, a, b) or (apart, apart), (apart - processes, apart + processes)


def _slower(intervals: Sequence[Interval], taken: float) -> tuple[int, ...]:
    """Return by each interval which run is slower with a time taken off [s]: 1 for A, -1 for B, 0 if it holds 0."""
    return tuple(1 if low > taken else -1 if high < taken else 0 for low, high in intervals)
