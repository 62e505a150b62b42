"""The grid of a sweep: of each cell which backend is fastest, as far as its runs tell, and what limits each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.account.row import Row
from roofline.comparison.ranking import rank
from roofline.core.schema import slug
from roofline.core.vocabulary import BOUNDS
from roofline.sweeping import folder as results
from roofline.sweeping.folder import Failure
from roofline.sweeping.plan import Point

#: What limits a step where that is no bound of ops: the time in which none ran.
GAP = "gap"
#: Flags of runs whose times are of more than the step.
_DISTURBED = frozenset(("contended", "throttled", "beyond-step"))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a point. wall: seconds per step; ci95: of its median.

    limit: a bound of ops, or GAP, with most time; share: that time, of the step. samples: per second. is_disturbed:
    whether other programs ran beside it, or the clock was held back. device: its name. failure: why there is no
    profile; None also where it was not measured yet, or only counted.
    """

    point: Point
    wall: float | None = None
    ci95: tuple[float, float] | None = None
    limit: str | None = None
    share: float | None = None
    samples: float | None = None
    is_disturbed: bool = False
    device: str = ""
    failure: Failure | None = None

    @property
    def mostly(self) -> str | None:
        """Return what takes over half of the step; None where nothing does, or other programs disturbed the run."""
        return self.limit if not self.is_disturbed and (self.share or 0.0) > 0.5 else None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the grid: a point without its backend. results: of each backend, in the order of the plan.

    fastest: the backend with the shortest step; is_settled: whether its run and that of the next one say that it is
    faster (`comparison.headline`); factor: the next one's time over its; cause: the largest row of the account of both.
    None where fewer than two backends have times.
    """

    cell: Point
    results: tuple[Result, ...]
    fastest: str | None = None
    next: str | None = None
    is_settled: bool = False
    factor: float | None = None
    cause: Row | None = None


@dataclass(frozen=True, slots=True)
class Border:
    """A place where the answer changes between two neighbours along an axis, "batch" or "seq".

    kind: "winner" of all backends, or "limit" of one (`backend`), which takes over half of the step. before, after:
    what it is on both sides; low, high: the last and the first number on the axis. cell: of the first side. cause: the
    largest row of the account of its two fastest.
    """

    kind: str
    axis: str
    cell: Point
    low: int
    high: int
    before: str
    after: str
    backend: str = ""
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
    cells = tuple(_cell(folder, cell, of) for cell, of in by_cell.items())
    missing = sum(result.wall is None and result.failure is None for cell in cells for result in cell.results)
    backends = tuple(dict.fromkeys(point.backend for point in points))
    devices = dict.fromkeys(result.device for cell in cells for result in cell.results if result.device)
    return Grid(cells, backends, tuple(_borders(cells, backends)), missing, tuple(devices))


def _cell(folder: Path, cell: Point, points: Sequence[Point]) -> Cell:
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


def _result(point: Point, analysis: Analysis) -> Result:
    share, bound = analysis.table.share, analysis.table.bound
    times: dict[str, float] = {name: float(share[bound == code].sum()) for code, name in enumerate(BOUNDS)}
    times[GAP] = max(0.0, analysis.gap)
    limit = max(times, key=lambda name: times[name])
    samples = analysis.profile.samples
    return Result(
        point=point,
        wall=analysis.wall,
        ci95=analysis.wall_interval,
        limit=limit,
        share=times[limit] / analysis.wall,
        samples=None if samples is None else samples / analysis.wall,
        is_disturbed=not _DISTURBED.isdisjoint(map(slug, analysis.flags)),
        device=analysis.device.name,
    )


def _judged(cell: Cell, timed: Sequence[tuple[str, Analysis]]) -> Cell:
    """Judge the fastest and the next one of the backends of a cell. timed: names and runs, the fastest first."""
    if len(timed) < 2:
        return replace(cell, fastest=timed[0][0] if timed else None)
    (fastest, first), (following, second) = timed[:2]
    pair = rank([second.profile, first.profile], as_given=True).pairs[0]
    return replace(
        cell,
        fastest=fastest,
        next=following,
        is_settled=pair.headline.slower == 0 and pair.comparison.parity.verdict != "not comparable",
        factor=second.wall / first.wall,
        cause=max(pair.account.rows, key=lambda row: abs(row.seconds or 0.0), default=None),
    )


def _borders(cells: Sequence[Cell], backends: Sequence[str]) -> Iterator[Border]:
    """Find neighbours along both axes of which one has another winner, or a backend another limit."""
    for axis in ("batch", "seq"):
        lines: dict[Point, list[Cell]] = {}
        for cell in cells:
            if getattr(cell.cell, axis) is not None:
                lines.setdefault(cell.cell.without(axis), []).append(cell)
        for line in lines.values():
            ordered = sorted(line, key=lambda cell: getattr(cell.cell, axis))
            yield from _winners(axis, [cell for cell in ordered if cell.is_settled])
            for backend in backends:
                yield from _limits(axis, backend, ordered)


def _winners(axis: str, settled: Sequence[Cell]) -> Iterator[Border]:
    for before, after in pairwise(settled):
        if before.fastest != after.fastest:
            ends = getattr(before.cell, axis), getattr(after.cell, axis)
            winners = before.fastest or "", after.fastest or ""
            yield Border("winner", axis, before.cell, *ends, *winners, cause=before.cause)


def _limits(axis: str, backend: str, ordered: Sequence[Cell]) -> Iterator[Border]:
    of = [
        (getattr(cell.cell, axis), cell.cell, result.mostly)
        for cell in ordered
        for result in cell.results
        if result.point.backend == backend and result.mostly is not None
    ]
    for (low, cell, before), (high, _, after) in pairwise(of):
        if before != after:
            yield Border("limit", axis, cell, low, high, before or "", after or "", backend)
