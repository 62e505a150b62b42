"""The table of a write-up as GitHub Markdown, with its caption."""

from __future__ import annotations

from collections.abc import Iterable

from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _words
from roofline.renderers._facts import notes
from roofline.renderers._markdown import escape


def render(analysis: Analysis, by: str | None) -> str:
    """The verdict, the table by `by` (default: group) and the caption."""
    key = by or "group"
    rows = _tables.rows(analysis, key, _words.gap_name(analysis))
    columns = _tables.COLUMNS
    head = _line([key, *(column.heading.replace("\n", " ") for column in columns)])
    rule = _line(["---", *("---:" if column.number else "---" for column in columns)])
    body = [
        _line([escape(f"{row.label} {_tables.fused(row.parts)}".strip()), *(column.cell(row) for column in columns)])
        for row in rows
    ]
    sentence, caption = escape(_words.verdict(analysis)), escape(notes.caption(analysis))
    return "\n".join([sentence, "", head, rule, *body, "", f"*{caption}*", ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
