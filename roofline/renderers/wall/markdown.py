"""Write the table as GitHub Markdown: a row for each group of each run."""

from __future__ import annotations

from collections.abc import Iterable

from roofline.renderers._facts.wall import COLUMNS, Chart
from roofline.renderers._markdown import escape
from roofline.renderers._names.distinct import distinct


def render(chart: Chart) -> str:
    """Write the sentence, the kind of the shares, the table and the notes."""
    runs = chart.every
    names = distinct([run.heading for run in runs])
    body = [
        _line([f"**{escape(name)}**" if number == 0 else "", row.group, *(column.cell(row) for column in COLUMNS)])
        for name, run in zip(names, runs, strict=True)
        for number, row in enumerate(run.shown)
    ]
    head = _line(["run", "group", *(column.name for column in COLUMNS)])
    rule = _line(["---", "---", *("---:" if column.number else "---" for column in COLUMNS)])
    notes = [line for note in chart.notes for line in ("", f"*{escape(note)}*")]
    lead = escape(f"{chart.title}. {chart.about}")
    return "\n".join([lead, "", head, rule, *body, *notes, ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
