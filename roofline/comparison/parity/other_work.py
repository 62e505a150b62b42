"""Say whether the work that only one of two runs does can explain why they differ (docs/comparing.md).

What a run is asked for more takes as large a share of its step as of its FLOPs: what surrounds products grows with
them. Or the time of these products themselves, if that is more.
It can explain the difference where the runs say something else without it: the other run is slower, or 0 lies in
the interval, that of the steps or that of processes.
Ops of unknown work can explain a difference that takes no longer than they do in the slower run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roofline.analysis.bootstrap import Interval, draw, interval
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.parity.contractions import Product, executed
from roofline.comparison.parity.difference import Pair

#: Time that each run needs for the work that the other one lacks [s].
Seconds = tuple[float, float]


def more_work(pair: Pair, flops: tuple[Mapping[str, float], Mapping[str, float]]) -> dict[str, Seconds]:
    """Say by phase at most how long each run needs for what only it is asked for.

    flops: model FLOPs of both by phase, what they write out as multiplications and sums included.
    """
    times = pair.each(lambda run: _Times(executed(run)))
    walls, whole = pair.each(lambda run: run.wall), [sum(each.values()) for each in flops]
    found: dict[str, Seconds] = {}
    for phase in {*flops[0], *flops[1]}:
        asked = [each.get(phase, 0.0) for each in flops]
        seconds = [0.0, 0.0]
        if asked[0] != asked[1]:
            most = 0 if asked[0] > asked[1] else 1
            apart = asked[most] - asked[1 - most]
            own = times[most].beyond(times[1 - most], phase, apart)
            seconds[most] = max(walls[most] * apart / whole[most], own)
        found[phase] = seconds[0], seconds[1]
    return found


class _Times:
    """How often a run executes each product of each phase, and how long that takes [s]."""

    def __init__(self, products: Mapping[str, Mapping[Product, tuple[int, float]]]) -> None:
        self._products = products

    def beyond(self, other: _Times, phase: str, flops: float) -> float:
        """Return the time of `flops` at the rate of the products that the other run executes less often [s]."""
        theirs = other._products.get(phase, {})
        counted = surplus = 0.0
        for product, (times, seconds) in self._products.get(phase, {}).items():
            more = max(0, times - theirs.get(product, (0, 0.0))[0])
            counted += more * product.flops
            surplus += seconds * more / times
        return surplus * min(1.0, flops / counted) if counted else 0.0


def can_explain(pair: Pair, seconds: Seconds) -> bool:
    """Whether the runs say something else about which is slower without some time of each [s]."""
    intervals = _intervals(pair)
    said = _slower(intervals, 0.0)
    return any(_slower(intervals, taken) != said for taken in (seconds[0], -seconds[1], seconds[0] - seconds[1]))


def unknown_can_explain(pair: Pair, seconds: Seconds) -> bool:
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
