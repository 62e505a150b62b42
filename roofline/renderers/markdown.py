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
    table = tables.grid(analysis, key, rows)
    body = [
        [escape(f"{name} {parts}".strip()), *cells]
        for name, parts, cells in zip(table.names(None, wording.plain), table.parts, table.cells, strict=True)
    ]
    numbers = [number + 1 for number in range(len(table.heads)) if number not in table.words]
    heads = [key, *map(table.head, range(len(table.heads)))]
    sentence, caption = escape(wording.verdict(analysis)), escape(notes.caption(analysis))
    return "\n".join([sentence, "", *grid(heads, body, numbers), "", f"*{caption}*", ""])
