"""Plain text for a terminal: what `roofline profile` ends with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _terminal, _words
from roofline.renderers._facts import evidence, host, measured, notes
from roofline.renderers._names.distinct import distinct
from roofline.renderers._rows.choice import USUAL, Choice, chosen
from roofline.renderers._tables import Column, Row
from roofline.renderers._terminal import SHEET, Page, facts

#: Letters that names are given before a column makes room for them.
_LEAST_NAME = 20
#: Columns that make room for long names, where nobody sorts by them.
_FOR_SHORT_NAMES = {"floor %": "floor", "loss %": "loss", "FLOP/s vs matmul": "rate", "% of busy": "busy"}
_COUNTED = ("ops", "model", "executed", "vector", "read", "written")
_COUNTED_RANKS = (0, 4, 1, 5, 2, 3)
_COUNTED_WIDTHS = (28, 6, 12, 12, 12, 10, 10)


def render(analysis: Analysis, by: str | None, rows: Choice = USUAL, page: Page = SHEET) -> str:
    """The verdict, the facts, the table of groups and the evidence; with `by`, the verdict and that table."""
    if not analysis.timed:
        return _counted(analysis, by or "group", rows, page)
    lines = [*_terminal.wrapped(_words.verdict(analysis, host.most(analysis)), page, "bold"), ""]
    if by is None:
        lines += [*facts(measured.told(analysis), page), ""]
    lines += _table(analysis, by or "group", rows, page)
    if by is None:
        lines += ["", *facts(evidence.told(analysis), page)]
    elif told := facts(_explained(analysis, by), page):
        lines += ["", *told]
    return "\n".join(lines) + "\n"


def _counted(analysis: Analysis, by: str, choice: Choice, page: Page) -> str:
    """The work of a step that was only counted."""
    found = chosen(analysis, by, choice)
    cells: list[tuple[str, ...]] = [_COUNTED]
    for total in (*found.kept.values(), *(total for _, total in found.left), analysis.total):
        work = (total.model_flops, total.flops, total.vector_flops) if total.costed else (None, None, None)
        moved = (total.bytes_read, total.bytes_written) if total.costed else (None, None)
        cells.append((str(total.ops), *map(units.flop, work), *map(units.byte, moved)))
    wide = page.width >= sum(_COUNTED_WIDTHS) + len(_COUNTED)
    kept = list(range(len(_COUNTED))) if wide else _terminal.kept(cells, _COUNTED_RANKS, page.width - _LEAST_NAME)
    least = [_COUNTED_WIDTHS[0], *(_COUNTED_WIDTHS[number + 1] for number in kept)] if wide else []
    used = sum(least[1:]) if wide else sum(_terminal.widths([[line[n] for n in kept] for line in cells]))
    plain = [_words.plain(name) for name in found.kept]
    room = page.room(page.width - used - len(kept), max(map(len, plain), default=0))
    names = distinct(list(found.kept), max(room, _COUNTED_WIDTHS[0]) if wide else room, by)
    labels = [by, *names, *(label for label, _ in found.left), "total"]
    grid = [[label, *(line[number] for number in kept)] for label, line in zip(labels, cells, strict=True)]
    head, *body = _terminal.columns(grid, left=(0,), separator=" ", least=least)
    lines = [*_terminal.wrapped(f"{_words.subject(analysis)}: the work of one step, counted and not timed.", page), ""]
    lines.append(page.painted(head, "dim"))
    parts = [*(found.fused.get(name, ()) for name in found.kept), *(() for _ in found.left), ()]
    for line, fused in zip(body, parts, strict=True):
        lines += [line, *_below(_words.plain(_tables.fused(fused)), 2, page)]
    out = [head for number, head in enumerate(_COUNTED) if number not in kept]
    known, every = analysis.total.costed, analysis.total.ops
    lines += ["", f"Work known of {known} of {every} ops.", *_terminal.left_out(out, page)]
    compiled = facts(measured.compiled(analysis), page)
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _explained(analysis: Analysis, by: str) -> Iterator[tuple[str, str]]:
    """What a table may show that needs a word: columns that do not add up to the time, more than a roof allows."""
    if by not in _tables.LONG and (words := notes.overlap(analysis)):
        yield "overlap", words
    if words := notes.beyond(analysis):
        yield "beyond", words
    if words := notes.above(analysis):
        yield "above", words


def _table(analysis: Analysis, by: str, choice: Choice, page: Page) -> list[str]:
    rows = _tables.rows(analysis, by, _words.gap_name(analysis), choice)
    long = by in _tables.LONG  # long names: they come last, and some columns make room for them
    every = list(_tables.columns(analysis))
    if long:
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
        roof = 0 <= which < len(columns) and columns[which].name == "roof above"
        return page.painted(cell, _terminal.ROOFS.get(cell)) if roof else cell

    text = _terminal.columns(grid, left, paint=paint)
    body = []
    for line, row in zip(text[2:], rows, strict=True):
        body += _with_parts(line, row, room, page)
    ruled = _terminal.ruled([*text[:2], *body], 2, -1, page=page)
    return [*ruled, *_terminal.left_out([one.name for number, one in enumerate(every) if number not in kept], page)]


def _cells(columns: Sequence[Column], row: Row) -> list[str]:
    return [column.cell(row) for column in columns]


def _labels(rows: Sequence[Row], room: int, by: str) -> list[str]:
    """What is written for each row; no two names are alike."""
    names = iter(distinct([row.label for row in rows if row.named], room, by))
    return [next(names) if row.named else row.label for row in rows]


def _with_parts(line: str, row: Row, room: int, page: Page) -> list[str]:
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
