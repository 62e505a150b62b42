"""Write the table as GitHub Markdown: a row for each group of each run."""

from __future__ import annotations

from roofline.content.facts.wall import COLUMNS, Chart
from roofline.content.names.distinct import distinct
from roofline.renderers._markdown import escape, grid


def render(chart: Chart) -> str:
    """Write the sentence, the kind of the shares, the table and the notes."""
    runs = chart.every
    names = distinct([run.heading for run in runs])
    body = [
        [f"**{escape(name)}**" if number == 0 else "", row.name, *(column.cell(row) for column in COLUMNS)]
        for name, run in zip(names, runs, strict=True)
        for number, row in enumerate(run.shown)
    ]
    numbers = [number for number, column in enumerate(COLUMNS, 2) if column.number]
    notes = [line for note in chart.notes for line in ("", f"*{escape(note)}*")]
    lead, heads = escape(f"{chart.title}. {chart.about}"), ["run", "group", *(column.name for column in COLUMNS)]
    return "\n".join([lead, "", *grid(heads, body, numbers), *notes, ""])
