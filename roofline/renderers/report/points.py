"""Place the ops of a step as points under its roofs: all ops of one signature and phase are one.

Ops without times are ticks at their intensity, all of one signature one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.analysis.columns import numbered
from roofline.analysis.floors import VECTOR_PRECISION
from roofline.core.arrays import Array
from roofline.core.rows import buffers_known
from roofline.core.vocabulary import BOUNDS, GROUP_OF, Group
from roofline.renderers import _points, _tables
from roofline.renderers._words import plain
from roofline.renderers.report.parts.sums import Sums, per_op, summed

#: More points than anybody can tell apart: the ones of most time are shown.
MOST = 5000
#: What the bytes of an intensity are: all that an op touches, those of them that were in no cache at least and at most,
#: or counted ones.
ALL, COLD, COLD_HIGH, COUNTED = "dram", "cold", "cold_high", "counted"


@dataclass(frozen=True, slots=True)
class Point:
    """All ops of one signature and phase.

    seconds: their share time [s]; rate: FLOP/s in their own time, 0 for ops without FLOP; traffic: byte/s in it.
    intensity: FLOP per byte, by kind of byte; None where there are no such bytes. precision: the arithmetic of a
    product, the type of other work; "" where it is not known. facts: names and words for a reader.
    """

    signature: int
    phase: int
    group: Group
    precision: str
    seconds: float
    rate: float
    traffic: float
    intensity: Mapping[str, float | None]
    facts: tuple[tuple[str, str], ...]
    name: str


@dataclass(frozen=True, slots=True)
class Points:
    """Points with FLOP, which stand in the plane, those without, both by time; and the time without a place [s].

    unknown: of ops whose work is not known; crowded: of points beyond `MOST`. Of a step whose ops have no times only
    ticks, by work, and `arithmetic`: the precisions of its ops, those of most FLOP first.
    """

    placed: tuple[Point, ...]
    flopless: tuple[Point, ...]
    unknown: float
    crowded: float
    ticks: tuple[_points.Tick, ...] = ()
    arithmetic: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Point, ...]:
        """Return every point, those with FLOP first."""
        return (*self.placed, *self.flopless)


def points(analysis: WorkAnalysis) -> Points:
    """Collect the points of a step, or its ticks where its ops have no times."""
    if not isinstance(analysis, Analysis):
        return _untimed(analysis)
    ops, table = per_op(analysis), analysis.table
    if not len(ops.seconds):
        return Points((), (), 0.0, 0.0)
    columns = table.columns
    code, first = numbered(columns.signature, columns.phase)
    sums = summed(ops, code, len(first))
    traffic = {
        level: np.bincount(code, weights=amount, minlength=len(first)) for level, amount in _traffic(analysis).items()
    }
    bound = np.bincount(code * len(BOUNDS) + table.bound, weights=ops.seconds, minlength=len(first) * len(BOUNDS))
    near = np.bincount(code, weights=ops.seconds * table.near_ridge, minlength=len(first))
    roofs = bound.reshape(len(first), len(BOUNDS)).argmax(axis=1)
    merged: list[Point] = []
    unknown_seconds = 0.0
    for row, op in enumerate(first.tolist()):
        cost = analysis.profile.signatures[int(columns.signature[op])].cost
        if cost.intensity is None or sums.own[row] <= 0:
            unknown_seconds += float(sums.seconds[row])
            continue
        ridge = near[row] > sums.seconds[row] / 2
        roof = "near ridge" if ridge else BOUNDS[int(roofs[row])]
        moved = {level: float(amount[row]) for level, amount in traffic.items()}
        merged.append(_point(analysis, sums, row, op, moved, roof))
    merged.sort(key=lambda point: -point.seconds)
    largest = merged[:MOST]
    return Points(
        placed=tuple(point for point in largest if point.rate > 0),
        flopless=tuple(point for point in largest if point.rate <= 0),
        unknown=unknown_seconds,
        crowded=sum(point.seconds for point in merged[MOST:]),
    )


def _untimed(analysis: WorkAnalysis) -> Points:
    work: dict[str, float] = {}
    for op in analysis.profile.ops:
        cost, precision = analysis.profile.signatures[op.signature].cost, precision_of(analysis, op.signature)
        if precision:
            work[precision] = work.get(precision, 0.0) + (cost.flops or 0.0) + (cost.vector_flops or 0.0)
    used = tuple(sorted((name for name in work if work[name]), key=lambda name: -work[name]))
    return Points((), (), 0.0, 0.0, _points.points(analysis).ticks[:MOST], used)


def _point(analysis: Analysis, sums: Sums, row: int, op: int, moved: Mapping[str, float], roof: str) -> Point:
    """Build the point of a row of sums; moved: bytes of its ops by kind of byte, NaN where not all were counted."""
    profile = analysis.profile
    first_op = profile.ops[op]
    signature = profile.signatures[first_op.signature]
    work, traffic, own_seconds = float(sums.work[row]), moved[ALL], float(sums.own[row])
    number, wall = int(sums.ops[row]), analysis.wall
    low, high = sums.attained(row)
    counted = [None if math.isnan(moved[COUNTED]) else moved[COUNTED]] if COUNTED in moved else []
    facts = [
        ("ops", units.count(number)),
        ("class", analysis.op_class(first_op)),
        ("phase", plain(profile.phases[first_op.phase], 60)),
        ("time", f"{units.seconds(float(sums.seconds[row]))} ({units.percent(float(sums.seconds[row]) / wall)})"),
        ("work", units.flop(work)),
        ("traffic", units.byte(traffic)),
        *(("counted", units.byte(amount)) for amount in counted),
        ("rate", units.flop_rate(work / own_seconds)),
        ("bandwidth", units.byte_rate(traffic / own_seconds)),
        ("intensity", units.intensity(work / traffic if traffic else None)),
        ("of roof", f"{_tables.between(low, high)} %" if low is not None else units.UNKNOWN),
        ("limited by", roof),
        ("precision", plain(precision_of(analysis, first_op.signature)) or units.UNKNOWN),
        ("shapes", plain(signature.shapes, 300) or units.UNKNOWN),
    ]
    return Point(
        signature=first_op.signature,
        phase=first_op.phase,
        group=GROUP_OF[analysis.op_class(first_op)],
        precision=precision_of(analysis, first_op.signature),
        seconds=float(sums.seconds[row]),
        rate=work / own_seconds,
        traffic=traffic / own_seconds,
        intensity={level: work / amount if amount > 0 else None for level, amount in moved.items()},
        facts=tuple(facts),
        name=signature.name,
    )


def _traffic(analysis: Analysis) -> dict[str, Array]:
    """Return the bytes of each op by kind of byte, of the kinds that the profile knows; NaN: not counted."""
    profile, table = analysis.profile, analysis.table
    traffic = {ALL: per_op(analysis).traffic}
    if buffers_known(profile):
        traffic[COLD] = table.cold
        if (table.cold_high > table.cold).any():
            traffic[COLD_HIGH] = table.cold_high
    if counters_on(profile, analysis.device):
        by_counters = counted_on(profile, analysis.device)
        traffic[COUNTED] = by_counters.read + by_counters.written
    return traffic


def precision_of(analysis: WorkAnalysis, signature: int) -> str:
    """Return the precision of the work: of a product its arithmetic, else the type of vector work; "": not known."""
    signature_of_op = analysis.profile.signatures[signature]
    if signature_of_op.cost.flops:
        return (signature_of_op.precision.arithmetic or "") if signature_of_op.precision else ""
    dtype = signature_of_op.computes_in or ""
    return VECTOR_PRECISION.get(dtype, dtype)
