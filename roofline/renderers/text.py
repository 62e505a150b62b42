"""Write plain text for a terminal, with which `roofline profile` ends."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import tables, terminal, wording
from roofline.content.choice import USUAL, Choice
from roofline.content.facts import evidence, host, measured, notes
from roofline.content.grid import Grid
from roofline.content.terminal import SHEET, Page, facts
from roofline.renderers import _screen

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
    lines = [*terminal.wrapped(wording.verdict(analysis, host.most(analysis)), page, "bold"), ""]
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
    lines = [*terminal.wrapped(wording.verdict(analysis), page, "bold"), "", *_table(analysis, by, choice, page)]
    compiled = facts(measured.compiled(analysis), page)
    costed, ops = analysis.total.costed, analysis.total.ops
    lines += ["", f"Work known of {costed} of {wording.counted(ops, 'op')}."]
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _explained(analysis: Analysis, by: str) -> Iterator[tuple[str, str]]:
    """Explain what a table may show; a table of ops does not add up to the step anyway."""
    return ((name, words) for name, words in notes.remarks(analysis) if name != "overlap" or by not in tables.LONG)


def _table(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> list[str]:
    table = tables.table(analysis, by, choice)
    rows, columns = table.rows, list(table.columns)
    if (is_long := by in tables.LONG) and isinstance(analysis, Analysis):
        columns = [column for column in columns if _FOR_SHORT_NAMES.get(column.name, choice.sort) == choice.sort]
        columns.insert(0, tables.NUMBER)
    grid = Grid(
        by,
        "",
        [column.heading for column in columns],
        [[column.cell(row) for column in columns] for row in rows],
        ranks=[column.rank for column in columns],
        about=[column.about for column in columns],
        labels=[wording.plain(row.label) for row in rows],
        names=lambda room, sanitize: table.names(room, by, sanitize),
        rules=(len(rows) - 1,),
        last=is_long,
        words={number for number, column in enumerate(columns) if not column.number},
        parts=[wording.plain(tables.fused(row.parts)) for row in rows],
    )
    return terminal.table(grid, page, _LEAST_NAME)
