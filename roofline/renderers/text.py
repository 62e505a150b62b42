"""Write plain text for a terminal, with which `roofline profile` ends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.renderers import _screen, _tables, _terminal, _words
from roofline.renderers._facts import evidence, host, measured, memory, notes
from roofline.renderers._names.distinct import distinct
from roofline.renderers._rows.choice import USUAL, Choice
from roofline.renderers._tables import Column, Row, WorkRow
from roofline.renderers._terminal import SHEET, Page, facts

#: Letters that names are given before a column makes room for them.
_LEAST_NAME = 20
#: Columns that make room for long names, where nobody sorts by them.
_FOR_SHORT_NAMES = {"minimum %": "minimum", "above %": "above", "FLOP/s vs matmul": "rate", "% of busy": "busy"}


def render(
    analysis: WorkAnalysis, by: str | None, rows: Choice = USUAL, page: Page = SHEET, details: bool = False
) -> str:
    """Write the first screen; with `by`, the verdict and that table; with `details`, all facts and the groups."""
    if not isinstance(analysis, Analysis):
        return _counted(analysis, by or "group", rows, page)
    if by is None and not details and not rows.contains and rows.sort is None:
        places = len(analysis.profile.ops) if rows.every else rows.top
        return "\n".join(_screen.lines(analysis, page, places)) + "\n"
    lines = [*_terminal.wrapped(_words.verdict(analysis, host.most(analysis)), page, "bold"), ""]
    if by is None:
        lines += [*facts(measured.facts(analysis), page), ""]
    lines += _table(analysis, by or "group", rows, page)
    if by is None:
        lines += ["", *facts(evidence.facts(analysis), page)]
    elif explanation := facts(_explained(analysis, by), page):
        lines += ["", *explanation]
    return "\n".join(lines) + "\n"


def _counted(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> str:
    """Write the work of a step whose ops have no times."""
    lines = [*_terminal.wrapped(_words.verdict(analysis), page, "bold"), "", *_table(analysis, by, choice, page)]
    compiled = facts([*memory.facts(analysis.profile), *measured.compiled(analysis)], page)
    costed, ops = analysis.total.costed, analysis.total.ops
    lines += ["", f"Work known of {costed} of {_words.counted(ops, 'op')}."]
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _explained(analysis: Analysis, by: str) -> Iterator[tuple[str, str]]:
    """Explain what a table may show: columns that do not add up to the time, ops faster than a roof allows."""
    if by not in _tables.LONG and (words := notes.overlap(analysis)):
        yield "overlap", words
    if words := notes.beyond(analysis):
        yield "beyond", words
    if words := notes.above(analysis):
        yield "above", words


def _table(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> list[str]:
    table = _tables.table(analysis, by, _words.gap_name(analysis), choice)
    rows, table_columns = table.rows, list(table.columns)
    long = by in _tables.LONG  # long names: they come last, and some columns make room for them
    if long and isinstance(analysis, Analysis):
        table_columns = [
            column for column in table_columns if _FOR_SHORT_NAMES.get(column.name, choice.sort) == choice.sort
        ]
        table_columns.insert(0, _tables.NUMBER)
    cells = [_cells(table_columns, row) for row in rows]
    heads = [column.heading.partition("\n") for column in table_columns]
    cells = [[top for top, _, _ in heads], [bottom for _, _, bottom in heads], *cells]
    longest = max((len(_words.plain(row.label)) for row in rows), default=0)
    columns_kept = _terminal.fitting_columns(
        cells, [column.rank for column in table_columns], page.width - min(longest, _LEAST_NAME)
    )
    columns, cells = (
        [table_columns[number] for number in columns_kept],
        [[line[number] for number in columns_kept] for line in cells],
    )
    room = page.width - sum(wide + 2 for wide in _terminal.widths(cells))
    names = [by, "", *_labels(rows, page.room(room, longest), by)]
    word_columns = {number for number, column in enumerate(columns) if not column.number}
    if long:
        grid = [[*line, name] for name, line in zip(names, cells, strict=True)]
        word_columns.add(len(columns))
    else:
        grid = [[name, *line] for name, line in zip(names, cells, strict=True)]
        word_columns = {0, *(number + 1 for number in word_columns)}

    def paint(place: int, number: int, cell: str) -> str:
        if place < 2:
            return page.painted(cell, "dim")
        place_of_column = number if long else number - 1
        roof = 0 <= place_of_column < len(columns) and columns[place_of_column].name == "limited by"
        return page.painted(cell, _terminal.ROOFS.get(cell)) if roof else cell

    text = _terminal.columns(grid, word_columns, paint=paint)
    body = []
    for line, row in zip(text[2:], rows, strict=True):
        body += _with_parts(line, row, room, page)
    ruled = _terminal.ruled([*text[:2], *body], 2, -1, page=page)
    return [
        *ruled,
        *_terminal.left_out(
            [column.name for number, column in enumerate(table_columns) if number not in columns_kept], page
        ),
    ]


def _cells(columns: Sequence[Column], row: Row | WorkRow) -> list[str]:
    return [column.cell(row) for column in columns]


def _labels(rows: Sequence[Row | WorkRow], room: int, by: str) -> list[str]:
    """Write the label of each row; no two names are alike."""
    names = iter(distinct([row.label for row in rows if row.named], room, by))
    return [next(names) if row.named else row.label for row in rows]


def _with_parts(line: str, row: Row | WorkRow, room: int, page: Page) -> list[str]:
    """Write the line of a row and the ops fused into its own: after its name where there is room, else below."""
    parts = _words.plain(_tables.fused(row.parts))
    if not parts:
        return [line]
    if _terminal.letters(line) + 2 + len(parts) <= page.width:
        return [f"{line}  {parts}"]
    return [line, *_below(parts, page.width - room + 2, page)]


def _below(parts: str, indent: int, page: Page) -> list[str]:
    """Write the fused ops on at most two lines of their own."""
    room = page.width - indent
    lines = textwrap.wrap(parts, room, subsequent_indent=" ", max_lines=2, placeholder=" …", break_on_hyphens=False)
    return [" " * indent + line for line in lines]
