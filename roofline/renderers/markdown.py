"""Write the table of a write-up as GitHub Markdown, with its caption."""

from __future__ import annotations

from roofline.analysis.analysis import WorkAnalysis
from roofline.content import tables, wording
from roofline.content.choice import USUAL, Choice
from roofline.content.facts import notes
from roofline.renderers._markdown import escape, grid


def render(analysis: WorkAnalysis, by: str | None, rows: Choice = USUAL) -> str:
    """Write the verdict, the table by `by` (default: group) and the caption. Kernels have short names, no two alike."""
    key = by or "group"
    table = tables.table(analysis, key, rows)
    body = [
        [escape(f"{name} {tables.fused(row.parts)}".strip()), *(column.cell(row) for column in table.columns)]
        for row, name in zip(table.rows, table.names(None, key), strict=True)
    ]
    numbers = [number for number, column in enumerate(table.columns, 1) if column.number]
    heads = [key, *(column.name for column in table.columns)]
    sentence, caption = escape(wording.verdict(analysis)), escape(notes.caption(analysis))
    return "\n".join([sentence, "", *grid(heads, body, numbers), "", f"*{caption}*", ""])
