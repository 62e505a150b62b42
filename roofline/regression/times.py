"""Make the gates of measurements: the time of a step, its gap and its peak memory. A time fails beyond noise only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from roofline.analysis.analysis import Analysis
from roofline.comparison.account.account import account
from roofline.comparison.account.row import Row
from roofline.comparison.ranking import on_common_ceilings
from roofline.comparison.terms import compare
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.memory.use import WORDS, memory_use
from roofline.regression.growth import Gate, GrownPlace, Measure, Status, main_causes, make_gate, most_first, skip_gate
from roofline.regression.limits import Limit, Limits


def times(before: Analysis, after: Analysis, limits: Limits) -> list[Gate]:
    """Make the gates of the time, the gap and the peak memory of two profiles that were measured alike."""
    sides = (before, after)
    walls, gaps = [side.wall_interval for side in sides], [_gap_shares(side) for side in sides]
    time = _timed("time", limits.time, (before.wall, after.wall), walls)
    if any(side.fills_by_scale for side in sides):
        gap = skip_gate("gap", limits.gap, "op times of one were scaled to plain steps, which they fill")
    else:
        gap = _timed("gap", limits.gap, (before.gap / before.wall, after.gap / after.wall), gaps)
    if time.status != "passed" or gap.status not in ("passed", "skipped"):
        rows = _grown_rows(before, after)
        time = _with_causes(time, rows)
        gap = _with_causes(gap, [row for row in rows if row.kind == "gap"])
    return [time, gap, _memory(before, after, limits.memory)]


def _grown_rows(before: Analysis, after: Analysis) -> list[Row]:
    """Return the rows of the account in which CURRENT takes longer, the largest first."""
    baseline, current = on_common_ceilings([before.profile, after.profile])
    names = ("BASELINE", "CURRENT")
    return [row for row in account(compare(baseline, current, names), names).rows if (row.seconds or 0.0) < 0]


def _with_causes(gate: Gate, rows: Sequence[Row]) -> Gate:
    """Add the rows that grew as causes to a gate that did not pass."""
    if gate.status in ("passed", "skipped"):
        return gate
    places = [GrownPlace((row.phase, None, row.op_class), row.text, -(row.seconds or 0.0)) for row in rows]
    return replace(gate, causes=main_causes(places))


def _timed(
    measure: Measure, limit: Limit, values: tuple[float, float], intervals: Sequence[tuple[float, float] | None]
) -> Gate:
    bounds = interval(values, intervals, limit)
    status: Status = "passed"
    note = ""
    if not limit.allows(limit.growth(*values)):
        resolved = bounds is not None and not limit.allows(bounds[0])
        status = "failed" if resolved else "unresolved"
        if bounds is None:
            note = "fewer than 3 steps give no interval"
        elif not resolved:
            note = "its 95 % interval reaches below the limit"
    return Gate(measure, None, limit, *values, status, bounds, (), note)


def interval(
    values: tuple[float, float], intervals: Sequence[tuple[float, float] | None], limit: Limit
) -> tuple[float, float] | None:
    """Compute the 95 % interval of the growth of two independent figures from their own intervals.

    The distances to the ends add in squares (Zou and Donner, 2008: MOVER), of the logarithms where the growth is a
    share.
    """
    (before, after), (first, second) = values, intervals
    if first is None or second is None:
        return None
    if not limit.absolute:
        if min(before, after, *first, *second) <= 0:
            return None
        before, after = math.log(before), math.log(after)
        first, second = (math.log(first[0]), math.log(first[1])), (math.log(second[0]), math.log(second[1]))
    growth = after - before
    down = math.hypot(max(0.0, after - second[0]), max(0.0, first[1] - before))
    up = math.hypot(max(0.0, second[1] - after), max(0.0, before - first[0]))
    low, high = growth - down, growth + up
    return (low, high) if limit.absolute else (math.expm1(low), math.expm1(high))


def _gap_shares(side: Analysis) -> tuple[float, float] | None:
    bounds = side.gap_interval
    return None if bounds is None else (bounds[0] / side.wall, bounds[1] / side.wall)


def _memory(before: Analysis, after: Analysis, limit: Limit) -> Gate:
    first, second = (memory_use(side.profile) for side in (before, after))
    if first.peak is None or second.peak is None:
        return skip_gate("memory", limit, "the peak is not known of both")
    if first.source != second.source:
        return skip_gate("memory", limit, "the peaks were not read the same way")
    parts = [
        GrownPlace((), name, now - then)
        for name, then, now in ((WORDS[kind], first.parts[kind], second.parts[kind]) for kind in STORAGE_KINDS)
        if then is not None and now is not None and now > then
    ]
    return make_gate("memory", None, limit, first.peak, second.peak, lambda: sorted(parts, key=most_first))
