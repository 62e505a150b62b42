"""Plain text for a terminal."""

from __future__ import annotations

from roofline.renderers import _terminal
from roofline.renderers._facts.wall import COLUMNS, Chart
from roofline.renderers._names.distinct import distinct
from roofline.renderers._terminal import SHEET, Page

#: Blanks before the name of a group.
_INDENT = "  "


def render(chart: Chart, page: Page = SHEET) -> str:
    """Write the sentence, what the shares are of, the table with the groups below each run, and the notes."""
    runs = chart.every
    groups = [[f"{_INDENT}{row.group}" for row in run.shown] for run in runs]
    cells = [[column.cell(row) for column in COLUMNS] for run in runs for row in run.shown]
    heads = [column.heading.partition("\n") for column in COLUMNS]
    grid = [[top for top, _, _ in heads], [bottom for _, _, bottom in heads], *cells]
    longest = max((len(name) for names in groups for name in names), default=0)
    kept = _terminal.kept(grid, [column.rank for column in COLUMNS], page.width - longest)
    names = ["", "", *(name for group in groups for name in group)]
    lines = _terminal.columns(
        [[name, *(line[number] for number in kept)] for name, line in zip(names, grid, strict=True)],
        left={0, *(place for place, number in enumerate(kept, 1) if not COLUMNS[number].number)},
    )
    body = iter(lines[2:])
    table = [page.painted(line, "dim") for line in lines[:2]]
    first = len(table)
    for name, group in zip(distinct([run.heading for run in runs], page.room(page.width, 0)), groups, strict=True):
        table += [page.painted(name, "bold"), *(next(body) for _ in group)]
    published = -sum(1 + len(run.shown) for run in chart.published)
    rules = (first, published) if published else (first,)
    out = [column.name for number, column in enumerate(COLUMNS) if number not in kept]
    told = [
        *_terminal.wrapped(f"{chart.title}.", page, "bold"),
        *_terminal.wrapped(chart.about, page),
        "",
        *_terminal.ruled(table, *rules, page=page),
        *_terminal.left_out(out, page),
    ]
    if chart.notes:
        told += ["", *(line for note in chart.notes for line in _terminal.wrapped(note, page))]
    return "\n".join(told) + "\n"
