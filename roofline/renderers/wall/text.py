"""Write plain text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.content import terminal
from roofline.content.facts.wall import COLUMNS, WORDS, Chart, in_lines
from roofline.content.names.distinct import distinct
from roofline.content.terminal import SHEET, Page

#: Blanks before the name of a group.
_INDENT = "  "
#: Letters of a line of the column of words, in the order in which they are tried.
_LETTERS = (200, 54, 40)


def render(chart: Chart, page: Page = SHEET) -> str:
    """Write the sentence, the kind of the shares, the table with the groups below each run, and the notes."""
    runs = chart.every
    names = [[f"{_INDENT}{row.name}" for row in run.shown] for run in runs]
    cells = [[[column.cell(row) for column in COLUMNS] for row in run.shown] for run in runs]
    heads = [column.heading.partition("\n") for column in COLUMNS]
    top = [[head for head, _, _ in heads], [head for _, _, head in heads]]
    longest = max((len(name) for group in names for name in group), default=0)
    columns_kept, letters = _fit([*top, *(row for rows in cells for row in rows)], page.width - longest)
    # Of each run the lines of its groups: a name stands on the first line of its row.
    grids = [
        [
            [name if place == 0 else "", *line]
            for name, row in zip(group, rows, strict=True)
            for place, line in enumerate(in_lines(row, letters))
        ]
        for group, rows in zip(names, cells, strict=True)
    ]
    lines = terminal.columns(
        [
            [line[0], *(line[1 + number] for number in columns_kept)]
            for line in [*(["", *line] for line in top), *(line for grid in grids for line in grid)]
        ],
        left_aligned={0, *(place for place, number in enumerate(columns_kept, 1) if not COLUMNS[number].number)},
    )
    body = iter(lines[2:])
    table = [page.painted(line, "dim") for line in lines[:2]]
    first = len(table)
    for name, grid in zip(distinct([run.heading for run in runs], page.room(page.width, 0)), grids, strict=True):
        table += [page.painted(name, "bold"), *(next(body) for _ in grid)]
    published = -sum(1 + len(run.shown) for run in chart.published)
    rules = (first, published) if published else (first,)
    out = [column.name for number, column in enumerate(COLUMNS) if number not in columns_kept]
    lines_of_text = [
        *terminal.wrapped(f"{chart.title}.", page, "bold"),
        *terminal.wrapped(chart.about, page),
        "",
        *terminal.ruled(table, *rules, page=page),
        *terminal.left_out(out, page),
    ]
    if chart.notes:
        lines_of_text += ["", *(line for note in chart.notes for line in terminal.wrapped(note, page))]
    return "\n".join(lines_of_text) + "\n"


def _fit(rows: Sequence[Sequence[str]], room: int) -> tuple[list[int], int]:
    """Choose the columns that fit, and the letters in a line of the words. room: for all columns [letters]."""
    ranks = [column.rank for column in COLUMNS]
    for letters in _LETTERS:
        columns_kept = terminal.fitting_columns([line for row in rows for line in in_lines(row, letters)], ranks, room)
        if WORDS in columns_kept:
            wide = terminal.widths(rows)
            return columns_kept, room - 2 - sum(wide[number] + 2 for number in columns_kept if number != WORDS)
    return columns_kept, _LETTERS[0]
