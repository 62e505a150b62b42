"""Write the table of a write-up as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.analysis.analysis import WorkAnalysis
from roofline.content import captions, tables, wording
from roofline.content.choice import USUAL, Choice
from roofline.content.facts import notes
from roofline.content.names.distinct import distinct
from roofline.content.tables import Row, WorkRow
from roofline.renderers._latex.escape import letters
from roofline.renderers._latex.table import LEAST_LONG_NAME, LEAST_NAME, LINES, PACKAGES, Column, Table, floated, label


def render(
    analysis: WorkAnalysis, by: str | None, rows: Choice = USUAL, columns: int = 1, caption: str = "short"
) -> str:
    """Write the table by `by` (default: group). Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, the width of the table. caption: "short" says what was measured and what the columns
    are; "long" also all versions, the spread and remarks, which otherwise stand in a comment.
    """
    key = by or "group"
    content = tables.table(analysis, key, rows)
    table = Table(
        name=key,
        columns=[
            Column(
                _heading(column),
                column.cells(content.rows),
                column.number,
                column.rank if column.in_paper is None else column.in_paper,
                column.about,
            )
            for column in content.columns
        ],
        named=lambda room: _names(content, room, key),
        # Ops, the gap and the total: a rule before each of the last rows says that they add up.
        rules=tuple(range(len(content.rows) - content.sums, len(content.rows))),
        least=LEAST_LONG_NAME if key in tables.LONG else LEAST_NAME,
        lines=LINES if key in tables.LONG else None,
    )
    long, profile = caption == "long", analysis.profile
    remarks = _remarks(analysis)
    lines = floated(
        table,
        columns,
        captions.measured(analysis, key),
        label(profile.model, profile.backend, profile.mode, key),
        [wording.verdict(analysis), *([] if long else [remarks]), *_fused(content.rows, key)],
        remarks if long else "",
    )
    return "\n".join([PACKAGES, *lines, ""])


def _heading(column: tables.Column) -> str:
    """Write the heading of a column no wider than its numbers."""
    return column.heading.replace("minimum", "min.")


def _remarks(analysis: WorkAnalysis) -> str:
    """Say what belongs beside the table: ops that overlapped or are above their roofs, device, versions, spread."""
    return f"{notes.further(analysis)}{wording.provenance(analysis)}"


def _fused(rows: Sequence[Row | WorkRow], by: str) -> list[str]:
    """List the ops that were fused into those of each row: there is hardly room for them in the table."""
    fused_rows = [row for row in rows if row.parts]
    names = distinct([row.label for row in fused_rows], by=by)
    return [
        wording.plain(f"{name} {tables.fused(row.parts)}", 400) for name, row in zip(names, fused_rows, strict=True)
    ]


def _names(table: tables.Table, letters_each: int, by: str) -> list[str]:
    """Write the label of each row, with the ops fused into its own where there is room for them."""
    labels = []
    for row, name in zip(table.rows, table.names(letters_each, by, letters), strict=True):
        full_name = f"{name} {letters(tables.fused(row.parts))}".strip()
        labels.append(full_name if len(full_name) <= letters_each else name)
    return labels
