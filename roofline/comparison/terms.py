"""Sum up wall_A - wall_B by phase, block and class, and by part of the gap (docs/explaining.md#terms).

    term of a place    d floor (compute, memory, launch), d loss, d uncosted, - d overlap of one (phase, block, class)
    term of the gap    d gap, by part where the parts are known
    residual           rounding

The *work view* divides a fused kernel over its constituents, the *kernel view* leaves it whole, in its dominant class.
Times are arrays of 1 + RESAMPLES numbers: as measured, then in each draw of the bootstrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import RESAMPLES, Interval, Resamples, draw, interval
from roofline.comparison.common_ceilings import analyze_together
from roofline.comparison.conservation import conserved
from roofline.comparison.parity.parity import Parity, parity
from roofline.comparison.segments import ROOF_OF, Place, Segments, segments, without_phases
from roofline.core import statistics
from roofline.core.arrays import Array, Rows
from roofline.core.schema import Profile
from roofline.errors import InputError

#: The part of a gap that the profiled steps could not split.
NOT_RESOLVED = "not resolved"
_NO_TIME = np.zeros(1 + RESAMPLES)
_NO_ROWS = np.zeros(0, np.int64)
#: Floors by family of ceilings [s], each with the quantity that its ceilings limit.
_Floors = Mapping[str, tuple[Array, float]]


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A term of wall_A - wall_B [s]. phase, block and op_class are None for the gap.

    kind: floor.<roof>.work, floor.<roof>.ceiling, floor.rebinding (the roof itself changed), floor.unknown (the work of
    the other run is not known there), loss, uncosted, overlap, or gap.<part>; roofs are compute, memory and launch.
    ci95: None below three steps of either run.
    """

    phase: str | None
    block: str | None
    op_class: str | None
    kind: str
    seconds: float
    ci95: Interval | None


@dataclass(frozen=True)
class Side:
    """A run of a comparison in one of its views."""

    analysis: Analysis
    segments: Segments
    resamples: Resamples

    @cached_property
    def own(self) -> Array:
        """Return the own time of each segment [s]."""
        own_seconds: Array = self.segments.own.mean(axis=1) * self.analysis.scale
        return own_seconds

    @cached_property
    def overlap(self) -> Array:
        """Return own time less share of each segment [s]."""
        return self.segments.overlap * self.analysis.scale

    @cached_property
    def seconds(self) -> Array:
        """Return the share time of each segment [s]."""
        seconds: Array = self.own - self.overlap
        return seconds

    def drawn(self, rows: Rows, parts: Array | float = 1.0) -> Array:
        """Sum the share times of some segments in each draw [s]; parts: of each segment that counts."""
        own_seconds, overlap = (self.segments.own[rows].T * parts).T, self.segments.overlap[rows] * parts
        return self.resamples.times(own_seconds) - self.resamples.times(overlap)

    @cached_property
    def rows(self) -> dict[Place, Rows]:
        """Return the segments at each place."""
        numbers: dict[Place, list[int]] = {}
        for row, place in enumerate(self.segments.places):
            numbers.setdefault(place, []).append(row)
        return {place: np.asarray(rows, np.int64) for place, rows in numbers.items()}


@dataclass(frozen=True, slots=True)
class View:
    """The terms of one view, largest first, and what is left of the difference: rounding."""

    a: Side
    b: Side
    terms: tuple[Term, ...]
    residual: float


@dataclass(frozen=True)
class Comparison:
    """Two runs, A and B, and the terms of wall_A - wall_B in both views; gap: gap_A - gap_B by part [s]."""

    a: Analysis
    b: Analysis
    parity: Parity
    work: View
    kernel: View
    gap: Mapping[str, Array] = field(repr=False)

    @property
    def difference(self) -> float:
        """Return wall_A - wall_B [s]."""
        return self.a.wall - self.b.wall

    @cached_property
    def ci95(self) -> Interval | None:
        """Return the 95 % interval of the difference [s]; None where a run's walls do not tell their spread."""
        a, b = self.work.a.resamples, self.work.b.resamples
        return interval(a.wall - b.wall, a, b, kind="wall")

    @property
    def resolved(self) -> bool:
        """Return whether the runs show which of them is faster: the difference has an interval, which leaves 0 out."""
        return self.ci95 is not None and (self.ci95[0] > 0 or self.ci95[1] < 0)

    @property
    def speedup(self) -> float:
        """Return wall_A / wall_B: how many times faster B is."""
        return self.a.wall / self.b.wall

    @cached_property
    def speedup_ci95(self) -> Interval | None:
        """Return the 95 % interval of the speedup; None where a run's walls do not tell their spread."""
        a, b = self.work.a.resamples, self.work.b.resamples
        return interval(a.wall / b.wall, a, b, kind="wall")

    @property
    def has_intervals(self) -> bool:
        """Return whether all rows of both runs have intervals, those of ops and those of gaps."""
        return all("gap" in side.resamples.known for side in (self.work.a, self.work.b))


def compare(a: Profile, b: Profile, names: tuple[str, str] | None = None) -> Comparison:
    """Sum up the difference of two runs. names: what parity calls the runs.

    Raises InputError where there is nothing to compare: a profile without times of ops. Runs that do other work are
    compared all the same; whether that means anything is for `parity` to say.
    """
    for number, profile in enumerate((a, b), 1):
        if not profile.has_times:
            raise InputError(
                f"Profile {number} ({profile.model} on {profile.backend}) has no times of ops: "
                "profile it without --count-only."
            )
    runs = analyze_together(a, b)
    resamples = draw(runs[0], runs[1]), draw(runs[1], runs[0])
    gap = _gap(runs, resamples)
    work = _view(runs, resamples, gap, divide=True)
    # Where nothing is fused there is nothing to divide.
    kernel = _view(runs, resamples, gap, divide=False) if any(run.table.columns.fused.any() for run in runs) else work
    return Comparison(runs[0], runs[1], parity(*runs, names), work, kernel, gap)


def _gap(runs: Sequence[Analysis], resamples: Sequence[Resamples]) -> dict[str, Array]:
    """Subtract the gap of B from that of A by part [s]; a gap whose parts are not known is `NOT_RESOLVED`."""
    gap: dict[str, Array] = {}
    for run, drawn, sign in zip(runs, resamples, (1, -1), strict=True):
        parts = run.gap_causes or {NOT_RESOLVED: run.gap}
        for name, seconds in parts.items():
            share = seconds / run.gap if run.gap else 1 / len(parts)
            gap[name] = gap.get(name, _NO_TIME) + sign * np.append(seconds, share * drawn.gap)
    return gap


def _view(runs: Sequence[Analysis], resamples: Sequence[Resamples], gap: Mapping[str, Array], divide: bool) -> View:
    divided = [conserved(segments(run, divide)) for run in runs]
    if any("phases-unresolved" in run.profile.flags for run in runs):
        divided = list(map(without_phases, divided))
    a, b = (Side(*side) for side in zip(runs, divided, resamples, strict=True))
    slower = [_slower_ceilings(run) for run in runs]
    terms: list[Term] = []
    for place in dict.fromkeys((*a.rows, *b.rows)):
        terms += [_term(kind, times, a, b, place) for kind, times in _differences(place, a, b, slower).items()]
    terms += [_term(f"gap.{name}", times, a, b) for name, times in gap.items()]
    # What rounding alone makes is in no order.
    least = statistics.ROUNDING * max(run.wall for run in runs)
    terms.sort(key=lambda term: -abs(term.seconds) if abs(term.seconds) > least else 0.0)
    return View(a, b, tuple(terms), (runs[0].wall - runs[1].wall) - sum(term.seconds for term in terms))


def _term(kind: str, times: Array, a: Side, b: Side, place: Place | None = None) -> Term:
    phase, block, op_class = place or (None, None, None)
    ci95 = interval(times[1:], a.resamples, b.resamples, kind="ops" if place else "gap")
    return Term(phase=phase, block=block, op_class=op_class, kind=kind, seconds=float(times[0]), ci95=ci95)


def _slower_ceilings(run: Analysis) -> dict[str, Array]:
    """Draw how many times slower than its value each ceiling is, by its uncertainty.

    Runs on one device share the ceilings and so the draws; ceilings of two devices are drawn apart.
    """
    device = run.device
    draws = {name: statistics.generator(device.name, name).random(RESAMPLES) for name in device.ceilings}
    return {name: np.append(1.0, 1 / (1 - device.uncertainty(name) * drawn)) for name, drawn in draws.items()}


def _differences(place: Place, a: Side, b: Side, slower: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Subtract what B spends at a place from what A does, by kind of term [s]; kinds that neither has are left out."""
    floors, sums, beyond_floors = [], [], []
    for side, ceilings in zip((a, b), slower, strict=True):
        rows = side.rows.get(place, _NO_ROWS)
        floors.append(_floors(side.segments, rows, ceilings))
        sums.append(sum((time for time, _ in floors[-1].values()), _NO_TIME))
        beyond_floors.append(_beyond_floor(side, rows, sums[-1]))
    is_unknown = any("uncosted" in times and "loss" not in times for times in beyond_floors)
    if is_unknown and (sums[0][0] > 0) != (sums[1][0] > 0):
        terms = {"floor.unknown": sums[0] - sums[1]}
    elif sums[0][0] > 0 < sums[1][0] and _roof(floors[0]) != _roof(floors[1]):
        terms = {"floor.rebinding": sums[0] - sums[1]}
    else:
        terms = _work_and_ceilings(*floors)
    kinds = [kind for kind in ("loss", "uncosted", "overlap") if any(kind in times for times in beyond_floors)]
    return terms | {kind: beyond_floors[0].get(kind, _NO_TIME) - beyond_floors[1].get(kind, _NO_TIME) for kind in kinds}


def _beyond_floor(side: Side, rows: Rows, floor: Array) -> dict[str, Array]:
    """Sum what a run spends at a place beyond its floor, by kind of term [s]; kinds of no op are left out."""
    segments, drawn = side.segments, side.resamples.times
    costed, uncosted = rows[~segments.uncosted[rows]], rows[segments.uncosted[rows]]
    times: dict[str, Array] = {}
    if len(costed):
        loss = (side.own[costed] - segments.floor[costed]).sum()
        times["loss"] = np.append(loss, drawn(segments.own[costed]) - floor[1:])
    if len(uncosted):
        times["uncosted"] = np.append(side.own[uncosted].sum(), drawn(segments.own[uncosted]))
    if overlap := side.overlap[rows].sum():
        times["overlap"] = -np.append(overlap, drawn(segments.overlap[rows]))
    return times


def _floors(segments: Segments, rows: Rows, slower: Mapping[str, Array]) -> _Floors:
    """Sum the floors of some segments and what their ceilings limit, by family; slower: draws of each ceiling."""
    # Ops under one ceiling are drawn together: what is drawn is the ceiling.
    sums: dict[str, tuple[float, float]] = {}
    for row in rows[segments.floor[rows] > 0].tolist():
        time, quantity = sums.get(segments.ceiling[row], (0.0, 0.0))
        sums[segments.ceiling[row]] = time + float(segments.floor[row]), quantity + float(segments.quantity[row])
    floors: dict[str, tuple[Array, float]] = {}
    for ceiling, (time, quantity) in sums.items():
        family = ceiling.partition(".")[0]
        times, quantities = floors.get(family, (_NO_TIME, 0.0))
        floors[family] = times + time * slower.get(ceiling, np.ones(1 + RESAMPLES)), quantities + quantity
    return floors


def _roof(floors: _Floors) -> str:
    """Return the roof that sets most of some floors."""
    sums = dict.fromkeys(ROOF_OF.values(), 0.0)
    for family, (times, _) in floors.items():
        sums[ROOF_OF[family]] += float(times[0])
    return max(sums, key=lambda roof: sums[roof])


def _work_and_ceilings(a: _Floors, b: _Floors) -> dict[str, Array]:
    """Split the difference of floors by roof: more work, W, and a slower ceiling for it, with t = W r of a family [s].

    t_A - t_B  =  (W_A - W_B) (r_A + r_B) / 2  +  (r_A - r_B) (W_A + W_B) / 2
    """
    terms: dict[str, Array] = {}
    for family in (family for family in ROOF_OF if family in a or family in b):
        (time_a, work_a), (time_b, work_b) = (floors.get(family, (_NO_TIME, 0.0)) for floors in (a, b))
        by_work = difference = time_a - time_b
        if work_a and work_b:  # else one run does nothing of the kind
            by_work = (work_a - work_b) * (time_a / work_a + time_b / work_b) / 2
        for kind, part in (("work", by_work), ("ceiling", difference - by_work)):
            name = f"floor.{ROOF_OF[family]}.{kind}"
            terms[name] = terms.get(name, _NO_TIME) + part
    return terms
