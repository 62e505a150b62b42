"""Say where the answer of a sweep changes, and lay its cells out in tables. Plain text; each format escapes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from roofline import units
from roofline.comparison.account.row import Row
from roofline.comparison.account.words import class_name
from roofline.content import wording
from roofline.sweeping.grid import GAP, Border, Cell, Grid, Result
from roofline.sweeping.plan import Point

#: What "!" and "≈" say of a time, and "≠" of a cell.
DISTURBED = "!: other programs ran beside it, its clock may have been lowered, or ops took longer than the step."
PREDICTED = "≈: not measured; predicted from the measured points around it."
APART = "≠: its backends were measured on different devices, or with different threads, and are not compared."
#: What limits a step, in words: a bound of ops, or the time in which none ran.
LIMITS = {GAP: "idle or host time", "unknown": "work that is not known"}

#: What is said of cells between the two sides of a border, by its kind.
_UNKNOWN = {"winner": "not settled", "limit": "nothing is known to be", "roof": "not known"}


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a sweep that differ in batch and length alone. part: what they share.

    batches, seqs: the coordinates in order, 0 for the default. by_place: the cell at (batch, seq).
    """

    part: Point
    batches: tuple[int, ...]
    seqs: tuple[int, ...]
    by_place: dict[tuple[int, int], Cell]


def tables(grid: Grid) -> list[Table]:
    """Group the cells of a sweep into tables, in the order of the plan."""
    parts: dict[Point, list[Cell]] = {}
    for cell in grid.cells:
        parts.setdefault(cell.cell.without("batch", "seq"), []).append(cell)
    return [
        Table(part, _values(cells, "batch"), _values(cells, "seq"), {_place(cell): cell for cell in cells})
        for part, cells in parts.items()
    ]


def _values(cells: Sequence[Cell], axis: str) -> tuple[int, ...]:
    return tuple(sorted({getattr(cell.cell, axis) or 0 for cell in cells}))


def _place(cell: Cell) -> tuple[int, int]:
    return cell.cell.batch or 0, cell.cell.seq or 0


def result_of(cell: Cell, backend: str) -> Result | None:
    """Find the result of a backend in a cell; None where the plan has no such point."""
    return next((result for result in cell.results if result.point.backend == backend), None)


def is_disturbed(cell: Cell) -> bool:
    """Return whether other programs ran beside one of the two runs that say who is fastest in a cell."""
    return any(result.is_disturbed for result in cell.results if result.point.backend in (cell.fastest, cell.next))


def subject(grid: Grid) -> str:
    """Name what all cells share, "bert infer, bf16", and of several models and modes all of them."""
    parts = {cell.cell.without("batch", "seq"): None for cell in grid.cells}
    if len(parts) == 1:
        return place(next(iter(parts)))
    names = [wording.conjunction([*dict.fromkeys(getattr(part, axis) for part in parts)]) for axis in ("model", "mode")]
    return wording.plain(" ".join(names), 120)


def headline(grid: Grid) -> str:
    """Say who is fastest in how many cells; of one backend what takes over half of its step."""
    if len(grid.backends) == 1:
        return limits(grid)
    timed = [cell for cell in grid.cells if cell.factor is not None]
    cells = wording.counted(len(timed), "cell")
    winners = Counter(cell.fastest or "" for cell in timed if cell.is_settled).most_common()
    if not winners:
        return f"not settled in any of {cells} who is fastest" if timed else "no two backends are timed in one cell"
    (first, number), *others = winners
    listed = [f"{wording.plain(first, 40)} is fastest in {number} of {cells}"]
    listed += [f"{wording.plain(name, 40)} in {number}" for name, number in others]
    unsettled = sum(not cell.is_settled for cell in timed)
    return ", ".join(listed) + (f"; {unsettled} not settled" if unsettled else "")


def limits(grid: Grid) -> str:
    """Say what takes over half of how many steps."""
    timed = [result for cell in grid.cells for result in cell.results if result.wall is not None]
    steps = wording.counted(len(timed), "step")
    mostly = Counter(result.mostly for result in timed if result.mostly is not None).most_common()
    if not mostly:
        return f"nothing is known to take over half of any of {steps}" if timed else "no step is timed"
    (first, number), *others = mostly
    listed = [f"over half is {limit(first)} in {number} of {steps}"]
    return ", ".join([*listed, *(f"{limit(name)} in {number}" for name, number in others)])


def limit(name: str) -> str:
    """Name what limits a step."""
    return LIMITS.get(name, wording.plain(name, 20))


def place(cell: Point, *without: str) -> str:
    """Name a cell, but for some of its coordinates: "bert infer, batch 4, 128 tokens, bf16"."""
    return wording.plain(cell.place(*without), 120)


def cause(row: Row | None) -> str:
    """Name the largest row of an account in a few words; "" for none."""
    if row is None:
        return ""
    if row.annotations:
        return row.annotations[0]
    return wording.plain(row.place or "", 60) or (
        f"the same {class_name(row.op_class)} ops" if row.kind == "rate" else "other ops"
    )


def interval(cell: Cell) -> str:
    """Write the 95 % interval of how many times the next backend takes: "1.86–2.15"."""
    if cell.factor_ci95 is None:
        return units.UNKNOWN
    low, high = map(units.significant, cell.factor_ci95)
    return f"{low}–{high}"


def time(result: Result, digits: int = 3) -> str:
    """Write the time of a step, a predicted one as "≈12.5 ms"; "" where there is none."""
    if result.wall is not None:
        return units.seconds(result.wall, digits)
    return f"≈{units.seconds(result.predicted.seconds, digits)}" if result.predicted else ""


def border(edge: Border, where: str = "") -> str:
    """Say a border: "bert train, 128 tokens: torch is fastest up to batch 2, jax from batch 4 on; ...".

    where: the cells that it holds for; "": of its own row or column.
    """
    noun = "batch {}" if edge.axis == "batch" else "{} tokens"
    low, high = noun.format(edge.low), noun.format(edge.high)
    where, backend = where or place(edge.cell, edge.axis), wording.plain(edge.backend, 40)
    between = noun.format(wording.conjunction(list(map(str, edge.between))))
    skipped = f" ({between}: {_UNKNOWN[edge.kind]})" if edge.between else ""
    if edge.kind == "winner":
        before, after = (wording.plain(name, 40) for name in (edge.before, edge.after))
        largest = f"; largest part of the difference at {low}: {cause(edge.cause)}" if edge.cause else ""
        return f"{where}: {before} is fastest up to {low}, {after} from {high} on{skipped}{largest}."
    before, after = limit(edge.before), limit(edge.after)
    if edge.kind == "roof":
        more = f"{before} limits more of the step than {after}"
        return f"{where}, {backend}: {more} up to {low}, less from {high} on{skipped}."
    return f"{where}, {backend}: over half of the step is {before} up to {low}, {after} from {high} on{skipped}."


def sentences(grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield what the grid lacks, its borders, and where a longer first step pays: id and sentence."""
    if grid.missing:
        yield "missing", f"{wording.counted(grid.missing, 'point')} not measured yet: roofline sweep -o DIR goes on."
    yield from _borders(grid)
    yield from _break_evens(grid)


def _borders(grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield a sentence for each border, those of several rows or columns in one where they are the same."""
    alike: dict[tuple[object, ...], list[Border]] = {}
    for edge in grid.borders:
        part = edge.cell.without("batch", "seq")
        ends = (edge.low, edge.high, edge.between)
        same = (edge.kind, edge.axis, edge.backend, *ends, edge.before, edge.after, cause(edge.cause))
        alike.setdefault((part, same), []).append(edge)
    for edges in alike.values():
        yield edges[0].kind, border(edges[0], _along(edges))


def _along(edges: Sequence[Border]) -> str:
    """Name the rows or columns of some borders: "bert infer, 32, 64 and 128 tokens"."""
    cell, axis = edges[0].cell, edges[0].axis
    other = "seq" if axis == "batch" else "batch"
    values = [str(value) for edge in edges if (value := getattr(edge.cell, other)) is not None]
    if len(values) < 2:
        return place(cell, axis)
    listed = wording.conjunction(values)
    return f"{place(cell, 'batch', 'seq')}, {f'batch {listed}' if other == 'batch' else f'{listed} tokens'}"


def _break_evens(grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield after how many steps a backend is ahead of another with a shorter first step, of all cells of a table."""
    for table in tables(grid):
        steps: dict[tuple[str, str], list[float]] = {}
        for cell in table.by_place.values():
            if cell.break_even is not None and cell.fastest is not None:
                steps.setdefault((cell.fastest, cell.break_even.against), []).append(cell.break_even.steps)
        for (fastest, other), numbers in steps.items():
            low, high = (units.significant(ceil(number), 2) for number in (min(numbers), max(numbers)))
            spread = f"{low} steps" if low == high else f"{low} to {high} steps"
            yield (
                "break-even",
                f"{place(table.part)}: {wording.plain(fastest, 40)}, whose first step is longer, is ahead of "
                f"{wording.plain(other, 40)} after {spread} (in {wording.counted(len(numbers), 'cell')}).",
            )
