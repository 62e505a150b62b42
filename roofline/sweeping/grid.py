"""The grid of a sweep: of each cell which backend is fastest, as far as its runs tell, and what limits each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.account.row import Row
from roofline.comparison.ranking import rank
from roofline.core.schema import slug
from roofline.core.vocabulary import BOUNDS
from roofline.sweeping import folder as results
from roofline.sweeping.folder import Failure
from roofline.sweeping.plan import Point, lines
from roofline.sweeping.prediction import Estimate, MeasuredPoint, Place, predict

#: What limits a step where that is no bound of ops: the time in which none ran.
GAP = "gap"
#: Flags of runs whose times are of more than the step.
_DISTURBED = frozenset(("contended", "throttled", "beyond-step"))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a point. wall: seconds per step; ci95: of its median.

    first: of the first step, which compiles [s]. times: of the step, by bound of ops and, where it is known, GAP [s].
    work: of its ops at the ceilings [s]. samples: per second. joules, joules_per_sample: of the device [J]; None
    where nobody counts them. joules_relative: their uncertainty, as a share. is_disturbed: whether its times may be of
    more than the step (`_DISTURBED`). device: its name; machine: its name, kind and, of a CPU, threads: times of two
    are not compared. failure: why there is no profile; None also where it was not measured yet, or only counted.
    predicted: of a point that is not measured yet, where measured ones lie around it.
    """

    point: Point
    wall: float | None = None
    ci95: tuple[float, float] | None = None
    first: float | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    work: float | None = None
    samples: float | None = None
    joules: float | None = None
    joules_per_sample: float | None = None
    joules_relative: float | None = None
    is_disturbed: bool = False
    device: str = ""
    machine: tuple[str, ...] = ()
    failure: Failure | None = None
    predicted: Estimate | None = None

    @property
    def is_missing(self) -> bool:
        """Return whether the point was not measured yet."""
        return self.wall is None and self.failure is None

    @property
    def range(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the step [s], measured or predicted; None where there is none."""
        return self.predicted.ci95 if self.predicted else self.ci95

    @property
    def limit(self) -> str | None:
        """Return the largest part of the step: a bound of ops, or GAP."""
        return max(self.times, key=lambda name: self.times[name], default=None)

    @property
    def share(self) -> float | None:
        """Return the share of the step that its largest part takes."""
        return None if self.limit is None or self.wall is None else self.times[self.limit] / self.wall

    @property
    def roof(self) -> str | None:
        """Return which limits more of the step, compute or memory, where both together take over half of it.

        None elsewhere, and where other programs disturbed the run.
        """
        compute, memory = self.times.get("compute", 0.0), self.times.get("memory", 0.0)
        if self.is_disturbed or self.wall is None or compute + memory <= self.wall / 2 or compute == memory:
            return None
        return "compute" if compute > memory else "memory"

    @property
    def mostly(self) -> str | None:
        """Return what takes over half of the step; None where nothing does, or other programs disturbed the run."""
        return self.limit if not self.is_disturbed and (self.share or 0.0) > 0.5 else None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the grid: a point without its backend. results: of each backend, in the order of the plan.

    fastest: the backend with the shortest step; is_settled: whether its run and that of the next one say that it is
    faster (`comparison.headline`); in_turns: whether they took turns; factor: the next one's time over its, with its
    interval; cause: the largest row of the account of both. None where fewer than two backends have times. break_even:
    where another backend has the shortest first step.
    """

    cell: Point
    results: tuple[Result, ...]
    fastest: str | None = None
    next: str | None = None
    is_settled: bool = False
    in_turns: bool = False
    factor: float | None = None
    factor_ci95: tuple[float, float] | None = None
    cause: Row | None = None
    break_even: BreakEven | None = None

    @property
    def machines(self) -> set[tuple[str, ...]]:
        """Return the machines on which its backends were measured; of several nothing is compared."""
        return {result.machine for result in self.results if result.wall is not None}

    @property
    def answer(self) -> str | None:
        """Return the fastest backend, "" where that is not settled; of a single one what takes over half of its step.

        None where nothing is known.
        """
        if len(self.results) == 1:
            return self.results[0].mostly
        return None if self.factor is None else self.fastest if self.is_settled else ""

    @property
    def predicted(self) -> str | None:
        """Return the backend that is fastest by predictions, where its interval ends before all others begin.

        None where nothing is predicted, or one backend has neither a time nor a prediction nor a failure.
        """
        ranges = {result.point.backend: result.range for result in self.results if result.failure is None}
        ends = {backend: low_high for backend, low_high in ranges.items() if low_high is not None}
        if len(ends) < max(2, len(ranges)) or not any(result.predicted for result in self.results):
            return None
        best = min(ends, key=lambda backend: ends[backend][1])
        return best if all(ends[best][1] < ends[backend][0] for backend in ends if backend != best) else None


@dataclass(frozen=True, slots=True)
class BreakEven:
    """After how many steps the fastest backend has made up for its longer first step, against the shortest one.

    first_F + (n - 1) step_F = first_O + (n - 1) step_O, with F the fastest and O the other.
    """

    against: str
    steps: float


@dataclass(frozen=True, slots=True)
class Border:
    """A place where the answer changes between two neighbours along an axis, "batch" or "seq".

    kind: "winner" of all backends; of one (`backend`) the "limit" that takes over half of the step, or the "roof",
    compute or memory, that limits more of it where neither takes half. before, after: what it is on both sides; low,
    high: the last and the first number on the axis; between: numbers of the plan in which that is not known. cell: of
    the first side. cause: the largest row of the account of its two fastest.
    """

    kind: str
    axis: str
    cell: Point
    low: int
    high: int
    before: str
    after: str
    backend: str = ""
    between: tuple[int, ...] = ()
    cause: Row | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A sweep: its cells in the order of the plan, its backends, and the borders between cells that were measured.

    missing: number of points that were not measured yet. devices: names of those that were measured on.
    """

    cells: tuple[Cell, ...]
    backends: tuple[str, ...]
    borders: tuple[Border, ...]
    missing: int
    devices: tuple[str, ...]


def read(folder: Path) -> Grid:
    """Read the results of a folder. Raises InputError where a part of it is damaged."""
    points = results.read_plan(folder)
    by_cell: dict[Point, list[Point]] = {}
    for point in points:
        by_cell.setdefault(point.without("backend"), []).append(point)
    cells = _predicted([read_cell(folder, cell, of) for cell, of in by_cell.items()])
    missing = sum(result.is_missing for cell in cells for result in cell.results)
    backends = tuple(dict.fromkeys(point.backend for point in points))
    devices = dict.fromkeys(result.device for cell in cells for result in cell.results if result.device)
    return Grid(cells, backends, tuple(_borders(cells, backends)), missing, tuple(devices))


def read_cell(folder: Path, cell: Point, points: Sequence[Point]) -> Cell:
    """Read a cell and judge its backends. points: of the cell. Raises InputError where a part of it is damaged."""
    timed: list[tuple[str, Analysis]] = []
    cell_results = []
    for point in points:
        profile = results.profile(folder, point)
        analysis = None if profile is None else analyze(profile)
        if isinstance(analysis, Analysis):
            timed.append((point.backend, analysis))
            cell_results.append(_result(point, analysis))
        else:
            failure = results.failure(folder, point) if profile is None else None
            cell_results.append(Result(point, failure=failure))
    return _judged(Cell(cell, tuple(cell_results)), sorted(timed, key=lambda run: run[1].wall))


def _predicted(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Predict the points that are not measured yet, by the undisturbed ones of their backend (`prediction`)."""
    tables: dict[Point, list[Result]] = {}
    for cell in cells:
        for result in cell.results:
            tables.setdefault(result.point.without("batch", "seq"), []).append(result)
    estimates: dict[Point, Estimate] = {}
    for results_of in tables.values():
        wanted = {_place(result.point): result.point for result in results_of if result.is_missing}
        if len({result.machine for result in results_of if result.wall is not None}) > 1:
            continue
        estimates |= (
            {wanted[at]: estimate for at, estimate in predict(measured_points(results_of), wanted).items()}
            if wanted
            else {}
        )
    return tuple(
        replace(cell, results=tuple(replace(result, predicted=estimates.get(result.point)) for result in cell.results))
        if any(result.point in estimates for result in cell.results)
        else cell
        for cell in cells
    )


def measured_points(of: Iterable[Result], disturbed: bool = False) -> dict[Place, MeasuredPoint]:
    """Collect what predictions rest on: points of known work, of one backend of a table. disturbed: such runs, too."""
    return {
        _place(result.point): MeasuredPoint(result.work, result.wall)
        for result in of
        if result.wall is not None and result.work is not None and (disturbed or not result.is_disturbed)
    }


def _place(point: Point) -> Place:
    return point.batch or 0, point.seq or 0


def _result(point: Point, analysis: Analysis) -> Result:
    share, bound = analysis.table.share, analysis.table.bound
    times: dict[str, float] = {name: float(share[bound == code].sum()) for code, name in enumerate(BOUNDS)}
    if analysis.gap_told is not None:
        times[GAP] = analysis.gap_told
    samples, energy = analysis.profile.samples, analysis.profile.energy
    return Result(
        point=point,
        wall=analysis.wall,
        ci95=analysis.wall_interval,
        first=analysis.profile.wall.first,
        times=times,
        work=float(np.nansum(np.fmax(analysis.table.compute, analysis.table.memory))) or None,
        samples=None if samples is None else samples / analysis.wall,
        joules=None if energy is None else energy.per_step,
        joules_per_sample=None if energy is None else energy.per_sample(samples),
        joules_relative=None if energy is None else energy.relative,
        is_disturbed=not _DISTURBED.isdisjoint(map(slug, analysis.flags)),
        device=analysis.device.name,
        machine=_machine(analysis),
    )


def _machine(analysis: Analysis) -> tuple[str, ...]:
    """Return what must be equal for the times of two runs to be compared (see `same_device`)."""
    device = analysis.device
    threads = analysis.profile.environment.get("threads", "") if device.kind == "cpu" else ""
    return device.name, device.kind, threads


def _judged(cell: Cell, timed: Sequence[tuple[str, Analysis]]) -> Cell:
    """Judge the fastest and the next one of the backends of a cell. timed: names and runs, the fastest first."""
    if len(cell.machines) > 1:
        return cell
    if len(timed) < 2:
        return replace(cell, fastest=timed[0][0] if timed else None)
    (fastest, first), (following, second) = timed[:2]
    pair = rank([second.profile, first.profile], as_given=True).pairs[0]
    head, factor, interval = pair.headline, pair.headline.factor, pair.headline.factor_ci95
    if head.slower == 1:  # in turns the one is faster whose own run took longer
        fastest, following, factor = following, fastest, 1 / factor
        interval = None if interval is None else (1 / interval[1], 1 / interval[0])
    is_settled = head.slower is not None and pair.comparison.parity.verdict != "not comparable"
    return replace(
        cell,
        fastest=fastest,
        next=following,
        is_settled=is_settled,
        in_turns=head.settled is not None,
        factor=factor,
        factor_ci95=interval,
        cause=max(pair.account.rows, key=lambda row: abs(row.seconds or 0.0), default=None),
        break_even=_break_even(dict(timed), fastest) if is_settled else None,
    )


def _break_even(timed: Mapping[str, Analysis], fastest: str) -> BreakEven | None:
    """Find when the fastest backend has made up for its first step; None where its first step is the shortest, too."""
    firsts = {name: run.profile.wall.first for name, run in timed.items()}
    recorded = {name: first for name, first in firsts.items() if first is not None}
    if fastest not in recorded:
        return None
    earliest = min(recorded, key=lambda name: recorded[name])
    later, saved = recorded[fastest] - recorded[earliest], timed[earliest].wall - timed[fastest].wall
    return BreakEven(earliest, 1 + later / saved) if later > 0 and saved > 0 else None


def _borders(cells: Sequence[Cell], backends: Sequence[str]) -> Iterator[Border]:
    """Find neighbours along both axes of which one has another winner, or a backend another limit."""
    by_point = {cell.cell: cell for cell in cells}
    for axis, line in lines(by_point):
        numbers = [getattr(point, axis) for point in line]
        for border in _borders_along(axis, [by_point[point] for point in line], backends):
            between = tuple(number for number in numbers if border.low < number < border.high)
            yield replace(border, between=between)


def _borders_along(axis: str, ordered: Sequence[Cell], backends: Sequence[str]) -> Iterator[Border]:
    """Find the borders of a row or column: between cells whose answer is known, whatever lies between them."""
    yield from _winners(axis, [cell for cell in ordered if cell.is_settled])
    for backend in backends:
        of = [result for cell in ordered for result in cell.results if result.point.backend == backend]
        limits = list(_changes("limit", axis, of, [result.mostly for result in of]))
        yield from limits
        limit_ends = {(border.low, border.high) for border in limits}
        roofs = _changes("roof", axis, of, [result.roof for result in of])
        yield from (border for border in roofs if (border.low, border.high) not in limit_ends)


def _winners(axis: str, settled: Sequence[Cell]) -> Iterator[Border]:
    for before, after in pairwise(settled):
        if before.fastest != after.fastest and before.machines == after.machines:
            ends = getattr(before.cell, axis), getattr(after.cell, axis)
            winners = before.fastest or "", after.fastest or ""
            yield Border("winner", axis, before.cell, *ends, *winners, cause=before.cause)


def _changes(kind: str, axis: str, of: Sequence[Result], answers: Sequence[str | None]) -> Iterator[Border]:
    """Yield where the answers of one backend change along an axis. of: its results in order."""
    answered = [(result, answer) for result, answer in zip(of, answers, strict=True) if answer is not None]
    for (result, before), (following, after) in pairwise(answered):
        if before != after and result.machine == following.machine:
            ends = getattr(result.point, axis), getattr(following.point, axis)
            yield Border(kind, axis, result.point.without("backend"), *ends, before, after, result.point.backend)
