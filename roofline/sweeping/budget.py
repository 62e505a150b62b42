"""Spend a limited time of a sweep where the answer changes: corners, borders, turns along these, and then the rest.

    corner   the ends of both axes
    border   the middle of the longest gap between two measured cells with different answers
    turns    the two fastest of a cell next to another answer, or that is not settled: fresh processes, A B B A
    rest     what halves the largest gaps (`plan.coarse_first`)

Each time the first of these that has anything to do; a cell that is measured may make a border.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from roofline import units
from roofline.core.schema import Profile
from roofline.errors import RooflineError
from roofline.sweeping import folder as results
from roofline.sweeping import plan
from roofline.sweeping.grid import Cell, read_cell
from roofline.sweeping.lock import alone
from roofline.sweeping.plan import Point
from roofline.sweeping.run import attempt, has_result

#: Runs the steps of points in turns, and returns their profiles with these.
Settle = Callable[[Sequence[Point], Sequence[Profile]], Sequence[Profile]]


class Choice(NamedTuple):
    """Name what to do next, "corner", "border", "turns" or "rest", and in which cell."""

    kind: str
    cell: Point


def spend(
    folder: Path,
    points: Sequence[Point],
    measure: Callable[[Point], Profile],
    settle: Settle,
    say: Callable[[str], None],
    *,
    budget: float,
    retry: bool = False,
) -> Counter[str]:
    """Measure points for so long [s], each once; return how many ended how. See `run.run` for the rest."""
    ended: Counter[str] = Counter()
    by_cell: dict[Point, list[Point]] = {}
    for point in plan.coarse_first(points):
        by_cell.setdefault(point.without("backend"), []).append(point)
    cells: dict[Point, Cell | None] = {
        cell: read_cell(folder, cell, of) if all(has_result(folder, point, retry) for point in of) else None
        for cell, of in by_cell.items()
    }
    turned: set[Point] = set()
    end = time.monotonic() + budget
    while (choice := choose(cells, turned)) is not None and time.monotonic() <= end:
        cell = choice.cell
        if choice.kind == "turns":
            turned.add(cell)
            say(f"turns: {cell.place()} ({units.seconds(end - time.monotonic())} left)")
            ended[_take_turns(folder, by_cell[cell], cells[cell], settle, say)] += 1
        else:
            for point in by_cell[cell]:
                if (remaining := end - time.monotonic()) < 0:
                    break
                line = f"{choice.kind}: {point.backend}: {cell.place()} ({units.seconds(remaining)} left)"
                kind = attempt(folder, point, measure, say, line, retry=retry)
                ended.update([kind] if kind else [])
        cells[cell] = read_cell(folder, cell, by_cell[cell])
    return ended


def _take_turns(
    folder: Path, points: Sequence[Point], cell: Cell | None, settle: Settle, say: Callable[[str], None]
) -> str:
    """Run the two fastest backends of a cell in turns, and save their profiles."""
    assert cell is not None
    pair = [point for point in points if point.backend in (cell.fastest, cell.next)]
    profiles = [profile for point in pair if (profile := results.profile(folder, point)) is not None]
    try:
        with alone(pair[0].device, say):
            for point, profile in zip(pair, settle(pair, profiles), strict=True):
                results.keep(folder, point, profile)
    except RooflineError as error:
        say(f"  no turns: {units.cut(str(error), 200)}")
        return "without turns"
    return "in turns"


def choose(cells: Mapping[Point, Cell | None], turned: Collection[Point]) -> Choice | None:
    """Choose what to do next; None: nothing. cells: None for one that is not measured, in the order of the rest.

    turned: cells that took turns, or could not.
    """
    missing = [point for point, cell in cells.items() if cell is None]
    ends = set(plan.corners(cells))
    for point in missing:
        if point in ends:
            return Choice("corner", point)
    gaps = sorted(_gaps(cells), key=len, reverse=True)
    if gaps:
        return Choice("border", gaps[0][(len(gaps[0]) - 1) // 2])
    for point in _along_borders(cells):
        if point not in turned:
            return Choice("turns", point)
    return Choice("rest", missing[0]) if missing else None


def _gaps(cells: Mapping[Point, Cell | None]) -> Iterator[list[Point]]:
    """Yield the cells that are not measured between two neighbours with different answers."""
    for _, line in plan.lines(cells):
        answered = [number for number, point in enumerate(line) if _answer(cells[point]) is not None]
        for low, high in pairwise(answered):
            unmeasured = [point for point in line[low + 1 : high] if cells[point] is None]
            if unmeasured and _answer(cells[line[low]]) != _answer(cells[line[high]]):
                yield unmeasured


def _along_borders(cells: Mapping[Point, Cell | None]) -> list[Point]:
    """List the cells whose two fastest should take turns: those that are not settled, then those next to a border."""
    at_borders: dict[Point, None] = {}
    for _, line in plan.lines(cells):
        answered = [point for point in line if _answer(cells[point]) is not None]
        for low, high in pairwise(answered):
            if _answer(cells[low]) != _answer(cells[high]):
                at_borders |= dict.fromkeys((low, high))
    unsettled = [point for point, cell in cells.items() if _answer(cell) == ""]
    several = [point for point in dict.fromkeys([*unsettled, *at_borders]) if (cell := cells[point]) and cell.next]
    return [point for point in several if (cell := cells[point]) and not cell.in_turns]


def _answer(cell: Cell | None) -> str | None:
    return None if cell is None else cell.answer
