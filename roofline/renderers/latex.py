"""The table of a write-up as LaTeX (booktabs), with a caption."""

from __future__ import annotations

from collections.abc import Iterable

from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _words
from roofline.renderers._facts import notes

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "µ": r"\textmu{}",
    "…": r"\ldots{}",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}


def render(analysis: Analysis, by: str | None) -> str:
    """The table by `by` (default: group). Needs the packages booktabs and (before 2020) textcomp."""
    key = by or "group"
    rows = _tables.rows(analysis, key, _words.gap_name(analysis))
    columns = _tables.COLUMNS
    tops = [column.heading.partition("\n")[0] for column in columns]
    units = [column.heading.partition("\n")[2] for column in columns]
    body = [
        _line([f"{row.label} {_tables.fused(row.parts)}".strip(), *(column.cell(row) for column in columns)])
        for row in rows
    ]
    # Ops, the gap and the total: a rule before each of the last two says that they add up.
    body[-2:] = [r"    \midrule", body[-2], r"    \midrule", body[-1]]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{escape(_words.verdict(analysis))} {escape(notes.caption(analysis))}}}",
            rf"  \begin{{tabular}}{{l{''.join('r' if column.number else 'l' for column in columns)}}}",
            r"    \toprule",
            _line([key, *tops]),
            _line(["", *units]),
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escape(text: str) -> str:
    """`text` as LaTeX sets it. A letter that pdfLaTeX's default fonts lack becomes "?": a document must compile."""
    return "".join(_SPECIAL.get(c, c if ord(c) < 0x180 else "?") for c in _words.plain(text))


def _line(cells: Iterable[str]) -> str:
    return f"    {' & '.join(escape(cell) for cell in cells)} \\\\"
