"""Plain text for a terminal: what `roofline profile` ends with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.renderers import _screen, _tables, _terminal, _words
from roofline.renderers._facts import evidence, host, measured, notes
from roofline.renderers._names.distinct import distinct
from roofline.renderers._rows.choice import USUAL, Choice
from roofline.renderers._tables import Column, Row, WorkRow
from roofline.renderers._terminal import SHEET, Page, facts

#: Letters that names are given before a column makes room for them.
_LEAST_NAME = 20
#: Columns that make room for long names, where nobody sorts by them.
_FOR_SHORT_NAMES = {"floor %": "floor", "loss %": "loss", "FLOP/s vs matmul": "rate", "% of busy": "busy"}


def render(
    analysis: WorkAnalysis, by: str | None, rows: Choice = USUAL, page: Page = SHEET, details: bool = False
) -> str:
    """The first screen; with `by`, the verdict and that table; with `details`, all facts and the table of groups."""
    if not isinstance(analysis, Analysis):
        return _counted(analysis, by or "group", rows, page)
    if by is None and not details and not rows.contains and rows.sort is None:
        most = len(analysis.profile.ops) if rows.every else rows.top
        return "\n".join(_screen.lines(analysis, page, most)) + "\n"
    lines = [*_terminal.wrapped(_words.verdict(analysis, host.most(analysis)), page, "bold"), ""]
    if by is None:
        lines += [*facts(measured.facts(analysis), page), ""]
    lines += _table(analysis, by or "group", rows, page)
    if by is None:
        lines += ["", *facts(evidence.facts(analysis), page)]
    elif told := facts(_explained(analysis, by), page):
        lines += ["", *told]
    return "\n".join(lines) + "\n"


def _counted(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> str:
    """The work of a step whose ops have no times."""
    lines = [*_terminal.wrapped(_words.verdict(analysis), page, "bold"), "", *_table(analysis, by, choice, page)]
    compiled = facts(measured.compiled(analysis), page)
    known, every = analysis.total.costed, analysis.total.ops
    lines += ["", f"Work known of {known} of {_words.counted(every, 'op')}."]
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _explained(analysis: Analysis, by: str) -> Iterator[tuple[str, str]]:
    """What a table may show that needs a word: columns that do not add up to the time, more than a roof allows."""
    if by not in _tables.LONG and (words := notes.overlap(analysis)):
        yield "overlap", words
    if words := notes.beyond(analysis):
        yield "beyond", words
    if words := notes.above(analysis):
        yield "above", words


def _table(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> list[str]:
    table = _tables.table(analysis, by, _words.gap_name(analysis), choice)
    rows, every = table.rows, list(table.columns)
    long = by in _tables.LONG  # long names: they come last, and some columns make room for them
    if long and isinstance(analysis, Analysis):
        every = [one for one in every if _FOR_SHORT_NAMES.get(one.name, choice.sort) == choice.sort]
        every.insert(0, _tables.NUMBER)
    cells = [_cells(every, row) for row in rows]
    heads = [column.heading.partition("\n") for column in every]
    cells = [[top for top, _, _ in heads], [bottom for _, _, bottom in heads], *cells]
    longest = max((len(_words.plain(row.label)) for row in rows), default=0)
    kept = _terminal.kept(cells, [column.rank for column in every], page.width - min(longest, _LEAST_NAME))
    columns, cells = [every[number] for number in kept], [[line[number] for number in kept] for line in cells]
    room = page.width - sum(wide + 2 for wide in _terminal.widths(cells))
    names = [by, "", *_labels(rows, page.room(room, longest), by)]
    left = {number for number, column in enumerate(columns) if not column.number}
    if long:
        grid = [[*line, name] for name, line in zip(names, cells, strict=True)]
        left.add(len(columns))
    else:
        grid = [[name, *line] for name, line in zip(names, cells, strict=True)]
        left = {0, *(number + 1 for number in left)}

    def paint(place: int, number: int, cell: str) -> str:
        if place < 2:
            return page.painted(cell, "dim")
        which = number if long else number - 1
        roof = 0 <= which < len(columns) and columns[which].name == "limited by"
        return page.painted(cell, _terminal.ROOFS.get(cell)) if roof else cell

    text = _terminal.columns(grid, left, paint=paint)
    body = []
    for line, row in zip(text[2:], rows, strict=True):
        body += _with_parts(line, row, room, page)
    ruled = _terminal.ruled([*text[:2], *body], 2, -1, page=page)
    return [*ruled, *_terminal.left_out([one.name for number, one in enumerate(every) if number not in kept], page)]


def _cells(columns: Sequence[Column], row: Row | WorkRow) -> list[str]:
    return [column.cell(row) for column in columns]


def _labels(rows: Sequence[Row | WorkRow], room: int, by: str) -> list[str]:
    """What is written for each row; no two names are alike."""
    names = iter(distinct([row.label for row in rows if row.named], room, by))
    return [next(names) if row.named else row.label for row in rows]


def _with_parts(line: str, row: Row | WorkRow, room: int, page: Page) -> list[str]:
    """The line of a row, and what was fused into its ops: after its name where there is room, else below it."""
    parts = _words.plain(_tables.fused(row.parts))
    if not parts:
        return [line]
    if _terminal.letters(line) + 2 + len(parts) <= page.width:
        return [f"{line}  {parts}"]
    return [line, *_below(parts, page.width - room + 2, page)]


def _below(parts: str, indent: int, page: Page) -> list[str]:
    """What was fused, on at most two lines of its own."""
    room = page.width - indent
    lines = textwrap.wrap(parts, room, subsequent_indent=" ", max_lines=2, placeholder=" …", break_on_hyphens=False)
    return [" " * indent + line for line in lines]
