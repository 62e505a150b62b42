"""Write the table of a write-up as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.analysis.analysis import WorkAnalysis
from roofline.renderers import _tables, _words
from roofline.renderers._facts import notes
from roofline.renderers._latex.escape import escape as escape
from roofline.renderers._latex.escape import letters
from roofline.renderers._latex.table import LEAST_LONG_NAME, LEAST_NAME, PACKAGES, Table, floated, label
from roofline.renderers._names.distinct import distinct
from roofline.renderers._rows.choice import USUAL, Choice
from roofline.renderers._tables import Row, WorkRow


def render(
    analysis: WorkAnalysis, by: str | None, rows: Choice = USUAL, columns: int = 1, caption: str = "short"
) -> str:
    """Write the table by `by` (default: group). Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, the width of the table. caption: "short" is the verdict; "long" also explains the
    columns and the measurement, which otherwise stand in a comment.
    """
    key = by or "group"
    content = _tables.table(analysis, key, _words.gap_name(analysis), rows)
    table_rows, shown_columns = content.rows, content.columns
    heads = [column.heading.partition("\n") for column in shown_columns]
    table = Table(
        name=key,
        heads=[[top for top, _, _ in heads], [bottom for _, _, bottom in heads]],
        rows=[[column.cell(row) for column in shown_columns] for row in table_rows],
        numbers=[column.number for column in shown_columns],
        ranks=[column.rank for column in shown_columns],
        # Ops, the gap and the total: a rule before each of the last rows says that they add up.
        rules=tuple(range(len(table_rows) - content.sums, len(table_rows))),
        named=lambda room: _names(table_rows, room, key),
        least=LEAST_LONG_NAME if key in _tables.LONG else LEAST_NAME,
    )
    verdict, notes_below = _words.verdict(analysis), notes.caption(analysis)
    long = caption == "long"
    profile = analysis.profile
    lines = floated(
        table,
        columns,
        f"{verdict} {notes_below}" if long else verdict,
        label(profile.model, profile.backend, profile.mode, key),
        [*([] if long else [notes_below]), *_fused(table_rows, key)],
    )
    return "\n".join([PACKAGES, *lines, ""])


def _fused(rows: Sequence[Row | WorkRow], by: str) -> list[str]:
    """List the ops that were fused into those of each row: there is hardly room for them in the table."""
    fused_rows = [row for row in rows if row.parts]
    names = distinct([row.label for row in fused_rows], by=by)
    return [
        _words.plain(f"{name} {_tables.fused(row.parts)}", 400) for name, row in zip(names, fused_rows, strict=True)
    ]


def _names(rows: Sequence[Row | WorkRow], letters_each: int, by: str) -> list[str]:
    """Write the label of each row, with the ops fused into its own where there is room for them."""
    names = iter(distinct([row.label for row in rows if row.named], letters_each, by, letters))
    labels = []
    for row in rows:
        name = next(names) if row.named else letters(row.label)
        full_name = f"{name} {letters(_tables.fused(row.parts))}".strip()
        labels.append(full_name if len(full_name) <= letters_each else name)
    return labels
