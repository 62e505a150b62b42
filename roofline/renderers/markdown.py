"""The table of a write-up as GitHub Markdown, with its caption."""

from __future__ import annotations

import re
from collections.abc import Iterable

from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _words

SUFFIX = ".md"

_SPECIAL = re.compile(r"([\\`*_\[\]<>#+|~$@&]|(?<=:)//|(?<=www)\.)")


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
    sentence, caption = escape(_words.verdict(analysis)), escape(_words.caption(analysis))
    return "\n".join([sentence, "", head, rule, *body, "", f"*{caption}*", ""])


def escape(text: str) -> str:
    """`text` so that Markdown shows it as it is: no markup, no HTML, no new cell."""
    return _SPECIAL.sub(r"\\\1", _words.plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
