"""Why two runs differ, as a sum that closes: wall_A - wall_B = terms + residual (rounding).

    term of a place    d floor (compute, memory, launch), d loss, d uncosted, - d overlap of one (phase, block, class)
    term of the gap    d gap, by cause where the cause is known
    sign               a positive term is time that A spends and B does not

The terms come twice, and both times add up: the *work view* divides a fused kernel over its constituents and is what
sentences rest on; the *kernel view* leaves it whole, in its dominant class. A floor is work times the time per unit of
work, t = W r, and the difference of two products splits symmetrically (docs/explaining.md):

    t_A - t_B = (W_A - W_B) (r_A + r_B) / 2  +  (r_A - r_B) (W_A + W_B) / 2      work, and ceiling

so that fewer bytes and a faster device, or a lower precision, stand apart. Every term has a 95 % bootstrap interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import RESAMPLES, Interval, Resamples, draw, interval
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.common_ceilings import analyze_together, same_device
from roofline.comparison.conservation import conserved
from roofline.comparison.parity.parity import Parity, parity
from roofline.comparison.segments import FAMILIES, Place, Segments, segments, untold
from roofline.core import statistics
from roofline.core.schema import Profile
from roofline.errors import InputError

#: Names of the three roofs in the kinds of terms, in the order of `vocabulary.BOUNDS`.
ROOFS = ("compute", "memory", "launch")
#: The cause of a gap, or of a part of it, that the profiled steps could not explain.
NOT_RESOLVED = "not resolved"


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """One term of wall_A - wall_B [s]. phase, block and op_class are None for the gap.

    kind: floor.<roof>.work, floor.<roof>.ceiling, floor.rebinding (the roof itself changed), floor.unknown (the work of
    the other run is not known there), loss, uncosted, overlap, or gap.<cause>; roofs are compute, memory and launch.
    ci95: None below three steps of either run.
    """

    phase: str | None
    block: str | None
    op_class: str | None
    kind: str
    seconds: float
    ci95: Interval | None


@dataclass(frozen=True, slots=True)
class Cell:
    """The times of one run at one place, of one step [s]. floors: by roof, compute, memory, launch."""

    own: float
    seconds: float
    floors: tuple[float, float, float]
    loss: float
    uncosted: float
    overlap: float

    @property
    def floor(self) -> float:
        """The least time of its ops [s]."""
        return sum(self.floors)


NOTHING = Cell(0.0, 0.0, (0.0, 0.0, 0.0), 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Side:
    """One run in one view."""

    analysis: Analysis
    segments: Segments
    resamples: Resamples

    @cached_property
    def own(self) -> Array:
        """Own time of each segment [s]."""
        own: Array = self.segments.own.mean(axis=1) * self.analysis.scale
        return own

    @cached_property
    def overlap(self) -> Array:
        """Own time less share of each segment [s]."""
        return self.segments.overlap * self.analysis.scale

    @cached_property
    def seconds(self) -> Array:
        """Share time of each segment [s]."""
        seconds: Array = self.own - self.overlap
        return seconds

    def drawn_own(self, rows: Rows) -> Array:
        """Own time of some segments together, in each draw [s]."""
        return self.resamples.times(self.segments.own[rows])

    def drawn_overlap(self, rows: Rows) -> Array:
        """Own time less share of some segments together, in each draw [s]."""
        return self.resamples.times(self.segments.overlap[rows])

    def drawn(self, rows: Rows, parts: Array) -> Array:
        """Share time of some parts of some segments together, in each draw [s]."""
        own, overlap = self.segments.own[rows] * parts[:, None], self.segments.overlap[rows] * parts
        return self.resamples.times(own) - self.resamples.times(overlap)

    @cached_property
    def cells(self) -> dict[Place, Cell]:
        """What is done at each place."""
        return {place: self._cell(np.asarray(rows)) for place, rows in self.rows.items()}

    @cached_property
    def rows(self) -> dict[Place, list[int]]:
        """The segments at each place."""
        found: dict[Place, list[int]] = {}
        for row, place in enumerate(self.segments.places):
            found.setdefault(place, []).append(row)
        return found

    def _cell(self, rows: Rows) -> Cell:
        some = self.segments
        own, costed = self.own[rows], ~some.uncosted[rows]
        floors = [float(some.floor[rows][some.bound[rows] == roof].sum()) for roof in range(len(ROOFS))]
        return Cell(
            own=float(own.sum()),
            seconds=float(self.seconds[rows].sum()),
            floors=(floors[0], floors[1], floors[2]),
            loss=float((own - some.floor[rows])[costed].sum()),
            uncosted=float(own[~costed].sum()),
            overlap=float(self.overlap[rows].sum()),
        )


@dataclass(frozen=True, slots=True)
class View:
    """The terms of one view, largest first, and what is left of the difference: rounding."""

    a: Side
    b: Side
    terms: tuple[Term, ...]
    residual: float


@dataclass(frozen=True)
class Comparison:
    """Two runs, A and B, and the terms of wall_A - wall_B in both views.

    gap: gap_A - gap_B by cause [s], and in each draw. names: what sentences call the runs where nothing of their own
    tells them apart; None: nobody gave them a name.
    """

    a: Analysis
    b: Analysis
    parity: Parity
    work: View
    kernel: View
    gap: Mapping[str, tuple[float, Array]] = field(repr=False)
    names: tuple[str, str] | None = None

    @property
    def difference(self) -> float:
        """wall_A - wall_B [s]."""
        return self.a.wall - self.b.wall

    @cached_property
    def ci95(self) -> Interval | None:
        """The 95 % interval of the difference [s]; None below three steps, plain or profiled, of either run."""
        a, b = self.work.a.resamples, self.work.b.resamples
        return interval(a.wall - b.wall, a, b)

    @property
    def resolved(self) -> bool:
        """Whether the runs show which of them is faster: the interval of the difference is known and leaves 0 out."""
        return self.ci95 is not None and (self.ci95[0] > 0 or self.ci95[1] < 0)

    @property
    def speedup(self) -> float:
        """wall_A / wall_B: how many times faster B is."""
        return self.a.wall / self.b.wall

    @cached_property
    def speedup_ci95(self) -> Interval | None:
        """The 95 % interval of the speedup; None below three steps, plain or profiled, of either run."""
        a, b = self.work.a.resamples, self.work.b.resamples
        return interval(a.wall / b.wall, a, b)

    @cached_property
    def hardware_differs(self) -> bool:
        """Whether A and B ran on different devices, each under its own ceilings."""
        return not same_device(self.a.profile, self.b.profile)


def compare(a: Profile, b: Profile, names: tuple[str, str] | None = None) -> Comparison:
    """The difference of two runs as a sum that closes. names: what the runs are called beside others.

    Raises InputError where there is nothing to compare: a profile without times of ops. Runs that do other work are
    compared all the same; whether that means anything is for `parity` to say.
    """
    for number, profile in enumerate((a, b), 1):
        if not profile.has_times:
            raise InputError(
                f"Profile {number} ({profile.model} on {profile.backend}) has no times of ops: "
                "profile it without --count-only."
            )
    one, other = analyze_together(a, b)
    resamples = draw(one, other), draw(other, one)
    gap = _gap((one, resamples[0]), (other, resamples[1]))
    work, kernel = (_view(one, other, *resamples, gap, divide) for divide in (True, False))
    return Comparison(one, other, parity(one, other, names), work, kernel, gap, names)


def _view(
    a: Analysis,
    b: Analysis,
    resamples_a: Resamples,
    resamples_b: Resamples,
    gap: Mapping[str, tuple[float, Array]],
    divide: bool,
) -> View:
    some = [conserved(segments(run, divide)) for run in (a, b)]
    if any("phases-unresolved" in run.profile.flags for run in (a, b)):
        some = [untold(one) for one in some]
    sides = Side(a, some[0], resamples_a), Side(b, some[1], resamples_b)
    rates = _rates(a, b)
    terms: list[Term] = []
    for place in dict.fromkeys((*sides[0].rows, *sides[1].rows)):
        terms += _terms_at(place, *sides, rates)
    terms += [
        Term(
            phase=None,
            block=None,
            op_class=None,
            kind=f"gap.{cause}",
            seconds=seconds,
            ci95=interval(drawn, resamples_a, resamples_b),
        )
        for cause, (seconds, drawn) in gap.items()
    ]
    least = statistics.ROUNDING * max(a.wall, b.wall)
    # What rounding alone makes is in no order.
    terms.sort(key=lambda term: -abs(term.seconds) if abs(term.seconds) > least else 0.0)
    return View(*sides, tuple(terms), (a.wall - b.wall) - sum(term.seconds for term in terms))


def _gap(*runs: tuple[Analysis, Resamples]) -> dict[str, tuple[float, Array]]:
    """gap_A - gap_B by cause [s], and in each draw; the gap of a run whose causes are not known is `not resolved`."""
    found: dict[str, tuple[float, Array]] = {}
    for (analysis, resamples), sign in zip(runs, (1, -1), strict=True):
        causes = analysis.gap_causes or {NOT_RESOLVED: analysis.gap}
        for cause, seconds in causes.items():
            part = seconds / analysis.gap if analysis.gap else 1 / len(causes)
            known = found.get(cause, (0.0, np.zeros(RESAMPLES)))
            found[cause] = known[0] + sign * seconds, known[1] + sign * part * resamples.gap
    return found


def _rates(a: Analysis, b: Analysis) -> tuple[dict[str, Array], dict[str, Array]]:
    """For each run, how much slower than its value each ceiling is, in each draw: 1 or more, by its uncertainty.

    Runs on one device share the ceilings and so the resamples; ceilings of two devices are drawn apart.
    """
    found = []
    for device in (a.device, b.device):
        rngs = {name: statistics.generator(device.name, name) for name in device.ceilings}
        found.append({name: 1 / (1 - device.uncertainty(name) * rng.random(RESAMPLES)) for name, rng in rngs.items()})
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class _Floor:
    """The floor under one kind of ceiling at one place of one run: time [s], quantity, and the time in each draw."""

    time: float
    quantity: float
    drawn: Array


def _terms_at(place: Place, a: Side, b: Side, rates: tuple[dict[str, Array], dict[str, Array]]) -> list[Term]:
    """The terms of one place; those that are 0 in both runs are left out."""
    one, other = a.cells.get(place, NOTHING), b.cells.get(place, NOTHING)
    rows_a, rows_b = (np.asarray(side.rows.get(place, ()), np.int64) for side in (a, b))
    floors_a, floors_b = _floors(a, rows_a, rates[0]), _floors(b, rows_b, rates[1])
    floor = _drawn_floor(floors_a) - _drawn_floor(floors_b)
    found: list[tuple[str, float, Array]] = []
    costed_a, costed_b = rows_a[~a.segments.uncosted[rows_a]], rows_b[~b.segments.uncosted[rows_b]]
    rest_a, rest_b = rows_a[a.segments.uncosted[rows_a]], rows_b[b.segments.uncosted[rows_b]]
    unknown = (len(rest_a) and not len(costed_a)) or (len(rest_b) and not len(costed_b))
    if unknown and (one.floor > 0) != (other.floor > 0):
        found.append(("floor.unknown", one.floor - other.floor, floor))
    elif one.floor > 0 < other.floor and np.argmax(one.floors) != np.argmax(other.floors):
        found.append(("floor.rebinding", one.floor - other.floor, floor))
    else:
        for roof, name in enumerate(ROOFS):
            found += _split(name, floors_a.get(roof, {}), floors_b.get(roof, {}))
    if len(costed_a) or len(costed_b):
        found.append(("loss", one.loss - other.loss, a.drawn_own(costed_a) - b.drawn_own(costed_b) - floor))
    if len(rest_a) or len(rest_b):
        found.append(("uncosted", one.uncosted - other.uncosted, a.drawn_own(rest_a) - b.drawn_own(rest_b)))
    if one.overlap or other.overlap:
        found.append(("overlap", other.overlap - one.overlap, b.drawn_overlap(rows_b) - a.drawn_overlap(rows_a)))
    return [
        Term(
            phase=place.phase,
            block=place.block,
            op_class=place.op_class,
            kind=kind,
            seconds=value,
            ci95=interval(drawn, a.resamples, b.resamples),
        )
        for kind, value, drawn in found
    ]


def _drawn_floor(floors: Mapping[int, Mapping[str, _Floor]]) -> Array:
    return sum((floor.drawn for kinds in floors.values() for floor in kinds.values()), np.zeros(RESAMPLES))


def _floors(side: Side, rows: Rows, rates: Mapping[str, Array]) -> dict[int, dict[str, _Floor]]:
    """The floors at one place, by roof and by what its quantity is counted in."""
    some = side.segments
    # Ops under one ceiling are drawn together: what is drawn is the ceiling.
    sums: dict[tuple[int, str], tuple[float, float]] = {}
    for row in rows[some.floor[rows] > 0].tolist():
        under = int(some.bound[row]), some.ceiling[row]
        time, quantity = sums.get(under, (0.0, 0.0))
        sums[under] = time + float(some.floor[row]), quantity + float(some.quantity[row])
    found: dict[int, dict[str, _Floor]] = {}
    for (bound, ceiling), (time, quantity) in sums.items():
        kinds, family = found.setdefault(bound, {}), ceiling.partition(".")[0]
        known = kinds.get(family, _Floor(0.0, 0.0, np.zeros(RESAMPLES)))
        rate = rates.get(ceiling)
        drawn = time * (rate if rate is not None else np.ones(RESAMPLES))
        kinds[family] = _Floor(known.time + time, known.quantity + quantity, known.drawn + drawn)
    return found


def _split(roof: str, a: Mapping[str, _Floor], b: Mapping[str, _Floor]) -> list[tuple[str, float, Array]]:
    """The difference of the floors under one roof: more work, and a slower ceiling for it."""
    work, ceiling = (0.0, np.zeros(RESAMPLES)), (0.0, np.zeros(RESAMPLES))
    for family in FAMILIES:
        one, other = (side.get(family, _Floor(0.0, 0.0, np.zeros(RESAMPLES))) for side in (a, b))
        if not (one.time or other.time):
            continue
        by_work = _by_work(one.time, other.time, one.quantity, other.quantity)
        drawn = np.asarray(_by_work(one.drawn, other.drawn, one.quantity, other.quantity))
        work = work[0] + float(by_work), work[1] + drawn
        ceiling = ceiling[0] + (one.time - other.time) - float(by_work), ceiling[1] + (one.drawn - other.drawn) - drawn
    if not (a or b):
        return []
    return [(f"floor.{roof}.work", *work), (f"floor.{roof}.ceiling", *ceiling)]


def _by_work(time_a: float | Array, time_b: float | Array, a: float, b: float) -> float | Array:
    """(W_A - W_B) (r_A + r_B) / 2; where one side does nothing of the kind, all of the difference is work."""
    if not (a and b):
        return time_a - time_b
    return (a - b) * (time_a / a + time_b / b) / 2
