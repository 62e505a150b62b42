"""Place the ops of a step as points under its roofs: all ops of one signature and phase are one. No format draws here.

Ops without times are ticks at their intensity, all of one signature and group one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.analysis.columns import numbered
from roofline.analysis.floors import VECTOR_PRECISION
from roofline.analysis.places import executions
from roofline.content import wording
from roofline.content.sums import Sums, ceilings, limits, per_op, summed
from roofline.core.arrays import Array
from roofline.core.rows import Ints, buffers_known
from roofline.core.schema import Op
from roofline.core.vocabulary import GROUP_OF, Group, OpClass

#: More points than anybody can tell apart: the ones of most time are shown.
MOST = 5000
#: What the bytes of an intensity are: all that an op touches, those of them that were in no cache at least and at most,
#: or counted ones.
ALL, COLD, COLD_HIGH, COUNTED = "dram", "cold", "cold_high", "counted"


@dataclass(frozen=True, slots=True)
class Point:
    """All ops of one signature and phase. number: how often a step runs them, each turn of a loop counted.

    blocks: of the model that they are in, those of most time first. family: "matrix" for products, "vector" for other
    work; precision: of its arithmetic, "" where it is not known. seconds: share time; own: own time [s]. work: matrix
    and vector FLOP; moved: bytes by kind of byte, None where not all were counted; intensity: FLOP per byte of them,
    None where there are none. bound: in words; ceiling: the one that binds most of their time, "" for none; attained:
    the range of minimum / time.
    """

    signature: int
    phase: int
    name: str
    blocks: tuple[str, ...]
    group: Group
    op_class: OpClass
    family: str
    precision: str
    number: int
    seconds: float
    own: float
    work: float
    moved: Mapping[str, float | None]
    intensity: Mapping[str, float | None]
    bound: str
    ceiling: str
    attained: tuple[float | None, float | None]

    @property
    def roof(self) -> str:
        """Name the ceiling that binds most of their time."""
        return wording.roof_name(self.ceiling)

    @property
    def rate(self) -> float:
        """Return FLOP/s in their own time, 0 for ops without FLOP."""
        return self.work / self.own

    @property
    def traffic(self) -> float:
        """Return byte/s of compulsory traffic."""
        return (self.moved[ALL] or 0.0) / self.own

    @property
    def counted_traffic(self) -> float | None:
        """Return byte/s of counted traffic; None where hardware did not count all of it."""
        counted = self.moved.get(COUNTED)
        return counted / self.own if counted else None


@dataclass(frozen=True, slots=True)
class Tick:
    """Ops that do FLOP and were not timed: intensity [FLOP/byte of compulsory traffic], and their work [FLOP]."""

    name: str
    group: Group
    family: str
    precision: str
    intensity: float
    work: float


@dataclass(frozen=True, slots=True)
class Points:
    """Points with FLOP, those without, both by time; and the time without a place [s].

    unknown: of ops whose work is not known; crowded: of points beyond `MOST`. Of a step whose ops have no times only
    ticks, by work.
    """

    placed: tuple[Point, ...]
    flopless: tuple[Point, ...]
    unknown: float = 0.0
    crowded: float = 0.0
    ticks: tuple[Tick, ...] = ()

    @property
    def all(self) -> tuple[Point, ...]:
        """Return every point, those with FLOP first."""
        return (*self.placed, *self.flopless)

    @property
    def used(self) -> list[tuple[str, str]]:
        """List family and precision of the work, those of most time first; of ops without times those of most work."""
        sizes: dict[tuple[str, str], float] = {}
        for kind, size in [
            *(((point.family, point.precision), point.seconds) for point in self.placed),
            *(((tick.family, tick.precision), tick.work) for tick in self.ticks),
        ]:
            sizes[kind] = sizes.get(kind, 0.0) + size
        return sorted((kind for kind in sizes if kind[1]), key=lambda kind: -sizes[kind])

    @property
    def longest(self) -> float:
        """Return the longest time of a point [s]; 0 of none."""
        return max((point.seconds for point in self.all), default=0.0)


def points(analysis: WorkAnalysis) -> Points:
    """Collect the points of a step, or its ticks where its ops have no times."""
    if not isinstance(analysis, Analysis):
        return Points((), (), ticks=_ticks(analysis))
    if not analysis.profile.ops:
        return Points((), ())
    columns = analysis.table.columns
    code, first = numbered(columns.signature, columns.phase)
    sums = summed(per_op(analysis), code, len(first))
    numbers = np.bincount(code, weights=executions(analysis.profile), minlength=len(first))
    traffic = {
        level: np.bincount(code, weights=amount, minlength=len(first)) for level, amount in _traffic(analysis).items()
    }
    bounds = limits(analysis, code, first)
    words = list(zip(bounds, ceilings(analysis, code, first), _blocks(analysis, code, len(first)), strict=True))
    merged: list[Point] = []
    unknown = 0.0
    for row, op in enumerate(first.tolist()):
        if analysis.profile.signatures[int(columns.signature[op])].cost.intensity is None or sums.own[row] <= 0:
            unknown += float(sums.seconds[row])
            continue
        moved = {level: None if math.isnan(amount[row]) else float(amount[row]) for level, amount in traffic.items()}
        number = round(float(numbers[row]))
        merged.append(_point(analysis, sums, row, analysis.profile.ops[op], number, moved, *words[row]))
    merged.sort(key=lambda point: -point.seconds)
    largest = merged[:MOST]
    return Points(
        placed=tuple(point for point in largest if point.work > 0),
        flopless=tuple(point for point in largest if point.work <= 0),
        unknown=unknown,
        crowded=sum(point.seconds for point in merged[MOST:]),
    )


def _point(
    analysis: Analysis,
    sums: Sums,
    row: int,
    first: Op,
    number: int,
    moved: Mapping[str, float | None],
    bound: str,
    ceiling: str,
    blocks: tuple[str, ...],
) -> Point:
    """Build the point of a row of sums. first: of its ops."""
    work = float(sums.work[row])
    family, precision = arithmetic(analysis, first.signature)
    return Point(
        signature=first.signature,
        phase=first.phase,
        name=analysis.profile.signatures[first.signature].name,
        blocks=blocks,
        group=GROUP_OF[analysis.op_class(first)],
        op_class=analysis.op_class(first),
        family=family,
        precision=precision,
        number=number,
        seconds=float(sums.seconds[row]),
        own=float(sums.own[row]),
        work=work,
        moved=moved,
        intensity={level: work / amount if amount else None for level, amount in moved.items()},
        bound=bound,
        ceiling=ceiling,
        attained=sums.attained(row),
    )


def _blocks(analysis: Analysis, code: Ints, points: int) -> list[tuple[str, ...]]:
    """Return the blocks that the ops of each point are in, those of most of its time first."""
    table = analysis.table
    parts, first = numbered(code, table.columns.block)
    seconds = np.bincount(parts, weights=table.share, minlength=len(first))
    blocks: list[list[str]] = [[] for _ in range(points)]
    for op in first[np.argsort(-seconds, kind="stable")].tolist():
        blocks[int(code[op])].append(analysis.profile.blocks[int(table.columns.block[op])])
    return [tuple(filter(None, names)) for names in blocks]


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


def arithmetic(analysis: WorkAnalysis, signature: int) -> tuple[str, str]:
    """Return family and precision of the work: of a product its arithmetic, else the type of vector work."""
    signature_of_op = analysis.profile.signatures[signature]
    if signature_of_op.cost.flops:
        return "matrix", (signature_of_op.precision.arithmetic or "") if signature_of_op.precision else ""
    dtype = signature_of_op.computes_in or ""
    return "vector", VECTOR_PRECISION.get(dtype, dtype)


def _ticks(analysis: WorkAnalysis) -> tuple[Tick, ...]:
    profile = analysis.profile
    numbers: dict[tuple[int, Group], int] = {}
    for op in profile.ops:
        key = op.signature, GROUP_OF[analysis.op_class(op)]
        numbers[key] = numbers.get(key, 0) + 1
    ticks: list[Tick] = []
    for (signature, group), number in numbers.items():
        name, cost = profile.signatures[signature].name, profile.signatures[signature].cost
        if cost.intensity:
            work = number * ((cost.flops or 0.0) + (cost.vector_flops or 0.0))
            ticks.append(Tick(name, group, *arithmetic(analysis, signature), cost.intensity, work))
    return tuple(sorted(ticks, key=lambda tick: -tick.work)[:MOST])
