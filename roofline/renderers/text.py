"""Write plain text for a terminal, with which `roofline profile` ends."""

from __future__ import annotations

from dataclasses import replace

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import tables, terminal, wording
from roofline.content.choice import USUAL, Choice
from roofline.content.facts import evidence, host, measured, memory, notes
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
    # A table of ops does not add up to the step anyway.
    elif remarks := [each for each in notes.remarks(analysis) if each[0] != "overlap" or by not in tables.LONG]:
        lines += ["", *facts(remarks, page)]
    return "\n".join(lines) + "\n"


def _counted(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> str:
    """Write the work of a step whose ops have no times."""
    lines = [*terminal.wrapped(wording.verdict(analysis), page, "bold"), "", *_table(analysis, by, choice, page)]
    compiled = facts([*memory.facts(analysis.profile), *measured.compiled(analysis)], page)
    lines += ["", wording.known_work(analysis)]
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _table(analysis: WorkAnalysis, by: str, choice: Choice, page: Page) -> list[str]:
    without = [name for name, sort in _FOR_SHORT_NAMES.items() if by in tables.LONG and sort != choice.sort]
    grid = tables.grid(analysis, by, choice, numbered=True, without=without)
    return terminal.table(replace(grid, rules=grid.rules[-1:]), page, _LEAST_NAME)
