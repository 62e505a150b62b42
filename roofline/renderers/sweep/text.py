"""Write plain text for a terminal: who is fastest where, what limits whom, and where that changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roofline import units
from roofline.content import terminal
from roofline.content.terminal import SHEET, Page
from roofline.content.wording import plain
from roofline.renderers.sweep import _sentences
from roofline.sweeping.grid import GAP, Cell, Grid, Result
from roofline.sweeping.plan import Point

#: What limits a step, in a letter behind its time.
_LETTERS = {"compute": "C", "memory": "M", "near ridge": "R", "overhead": "O", GAP: "H", "unknown": "?"}
_LEGEND = (
    "What takes most of the step: C compute, M memory, R both alike, O overhead of small ops, H idle or host time, "
    "? not known."
)
_FAILED = {"refused": "–", "missing": "missing", "out of memory": "memory", "failed": "failed"}
_DISTURBED = "!: other programs ran beside it, or the clock was held back."
_FAILURES = "–: cannot be asked for; memory: ran out of it."
_SETTLED = "A backend is named where its run and the next one's tell that it is faster, with how many times; else ~."


def render(grid: Grid, page: Page = SHEET) -> str:
    """Write the grid."""
    lines: list[str] = []
    for part in _parts(grid.cells):
        lines += [*terminal.wrapped(_sentences.place(part[0].cell, "batch", "seq"), page, "bold"), ""]
        if len(grid.backends) > 1:
            lines += [*_table("fastest", part, _winner, page), ""]
        for backend in grid.backends:
            lines += [*_table(plain(backend, 40), part, _time_of(backend), page), ""]
    if len(grid.backends) > 1:
        lines += terminal.wrapped(_SETTLED, page)
    lines += terminal.wrapped(_LEGEND, page)
    every = [result for cell in grid.cells for result in cell.results]
    lines += terminal.wrapped(_DISTURBED, page) if any(result.is_disturbed for result in every) else []
    lines += terminal.wrapped(_FAILURES, page) if any(result.failure for result in every) else []
    sentences = [line for _, sentence in _sentences.sentences(grid) for line in terminal.wrapped(sentence, page)]
    lines += ["", *sentences] if sentences else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _parts(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Group cells that differ in batch and length alone."""
    parts: dict[Point, list[Cell]] = {}
    for cell in cells:
        parts.setdefault(cell.cell.without("batch", "seq"), []).append(cell)
    return list(parts.values())


def _table(head: str, cells: Sequence[Cell], write: Callable[[Cell], str], page: Page) -> list[str]:
    """Write a table with a row for each batch and a column for each length."""
    batches, seqs = (sorted({getattr(cell.cell, name) or 0 for cell in cells}) for name in ("batch", "seq"))
    by_place = {(cell.cell.batch or 0, cell.cell.seq or 0): cell for cell in cells}
    heads = [head, *(f"{seq} tokens" if seq else "step" for seq in seqs)]
    grid = [heads]
    for batch in batches:
        row = [f"batch {batch}" if batch else "default"]
        row += [write(cell) if (cell := by_place.get((batch, seq))) else "" for seq in seqs]
        grid.append(row)
    ranks = (0, *(1 + number for number in range(len(seqs))))
    return terminal.fitted(grid, (0,), ranks, page, 1)


def _winner(cell: Cell) -> str:
    if cell.fastest is None:
        return ""
    if cell.factor is None:
        return f"{plain(cell.fastest, 40)} alone"
    return f"{plain(cell.fastest, 40)} {units.significant(cell.factor)}x" if cell.is_settled else "~"


def _time_of(backend: str) -> Callable[[Cell], str]:
    def write(cell: Cell) -> str:
        result = next((one for one in cell.results if one.point.backend == backend), None)
        return "" if result is None else _time(result)

    return write


def _time(result: Result) -> str:
    if result.failure is not None:
        return _FAILED[result.failure.kind]
    if result.wall is None:
        return "·"
    return f"{units.seconds(result.wall)} {_LETTERS.get(result.limit or '', '?')}{'!' if result.is_disturbed else ' '}"
