"""Write plain text for a terminal: who is fastest where, what limits whom, and where that changes."""

from __future__ import annotations

from collections.abc import Callable

from roofline import units
from roofline.content import terminal
from roofline.content.facts import energy, sweep
from roofline.content.terminal import SHEET, Page
from roofline.content.wording import plain
from roofline.sweeping.grid import GAP, Cell, Grid, Result

#: What limits a step, in a letter behind its time.
_LETTERS = {"compute": "C", "memory": "M", "overhead": "O", GAP: "H", "unknown": "?"}
_LEGEND = (
    "The largest part of the step: C compute, M memory, O overhead of small ops, H idle or host time, ? not known."
)
_FAILED = {"refused": "–", "missing": "missing", "out of memory": "memory", "failed": "failed"}
_FAILURES = "–: cannot be asked for; memory: ran out of it."
_SETTLED = "A backend is named where its run and the next one's tell that it is faster, with how many times; else ~."


def render(grid: Grid, page: Page = SHEET) -> str:
    """Write the grid."""
    lines: list[str] = []
    for table in sweep.tables(grid):
        lines += [*terminal.wrapped(sweep.place(table.part), page, "bold"), ""]
        if len(grid.backends) > 1:
            lines += [*_table("fastest", table, _winner, page), ""]
        if any(cell.is_settled for cell in table.by_place.values()):
            lines += [*_table("95 % interval", table, _interval, page), ""]
        for backend in grid.backends:
            lines += [*_table(plain(backend, 40), table, _time_of(backend), page), ""]
            if any(_energy_of(backend)(cell) for cell in table.by_place.values()):
                lines += [*_table("per sample", table, _energy_of(backend), page), ""]
    if len(grid.backends) > 1:
        lines += terminal.wrapped(_SETTLED, page)
    lines += terminal.wrapped(sweep.APART, page) if any(len(cell.machines) > 1 for cell in grid.cells) else []
    lines += terminal.wrapped(_LEGEND, page)
    every = [result for cell in grid.cells for result in cell.results]
    lines += terminal.wrapped(sweep.DISTURBED, page) if any(result.is_disturbed for result in every) else []
    lines += terminal.wrapped(_FAILURES, page) if any(result.failure for result in every) else []
    lines += terminal.wrapped(sweep.PREDICTED, page) if any(result.predicted for result in every) else []
    sentences = [line for _, sentence in sweep.sentences(grid) for line in terminal.wrapped(sentence, page)]
    lines += ["", *sentences] if sentences else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _table(head: str, table: sweep.Table, write: Callable[[Cell], str], page: Page) -> list[str]:
    """Write a table with a row for each batch and a column for each length."""
    grid = [[head, *(f"{seq} tokens" if seq else "step" for seq in table.seqs)]]
    for batch in table.batches:
        row = [f"batch {batch}" if batch else "default"]
        row += [write(cell) if (cell := table.by_place.get((batch, seq))) else "" for seq in table.seqs]
        grid.append(row)
    ranks = (0, *(1 + number for number in range(len(table.seqs))))
    return terminal.fitted(grid, (0,), ranks, page, 1)


def _winner(cell: Cell) -> str:
    if cell.predicted is not None:
        return f"≈{plain(cell.predicted, 40)}"
    if len(cell.machines) > 1:
        return "≠"
    if cell.fastest is None:
        return "·" if all(result.is_missing for result in cell.results) else ""
    if cell.factor is None:
        return f"{plain(cell.fastest, 40)} alone"
    return f"{plain(cell.fastest, 40)} {units.significant(cell.factor)}x" if cell.is_settled else "~"


def _interval(cell: Cell) -> str:
    return f"{sweep.interval(cell)}x" if cell.is_settled else ""


def _time_of(backend: str) -> Callable[[Cell], str]:
    def write(cell: Cell) -> str:
        result = sweep.result_of(cell, backend)
        return "" if result is None else _time(result)

    return write


def _energy_of(backend: str) -> Callable[[Cell], str]:
    def write(cell: Cell) -> str:
        result = sweep.result_of(cell, backend)
        if result is None or result.joules_per_sample is None:
            return ""
        return energy.joules(result.joules_per_sample, result.joules_relative)

    return write


def _time(result: Result) -> str:
    if result.failure is not None:
        return _FAILED[result.failure.kind]
    if result.wall is None:
        return f"{sweep.time(result)}   " if result.predicted else "·"
    return f"{units.seconds(result.wall)} {_LETTERS.get(result.limit or '', '?')}{'!' if result.is_disturbed else ' '}"
