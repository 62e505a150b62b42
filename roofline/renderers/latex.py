"""The table of a write-up as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

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
    """The table by `by` (default: group). Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, that the table is as wide as. caption: "short" is the verdict; "long" also says what
    the columns are and how it was measured, which otherwise stands in a comment.
    """
    key = by or "group"
    content = _tables.table(analysis, key, _words.gap_name(analysis), rows)
    found, every = content.rows, content.columns
    heads = [column.heading.partition("\n") for column in every]
    table = Table(
        name=key,
        heads=[[top for top, _, _ in heads], [bottom for _, _, bottom in heads]],
        rows=[[column.cell(row) for column in every] for row in found],
        numbers=[column.number for column in every],
        ranks=[column.rank for column in every],
        # Ops, the gap and the total: a rule before each of the last rows says that they add up.
        rules=tuple(range(len(found) - content.sums, len(found))),
        named=lambda most: _names(found, most, key),
        least=LEAST_LONG_NAME if key in _tables.LONG else LEAST_NAME,
    )
    told, more = _words.verdict(analysis), notes.caption(analysis)
    long = caption == "long"
    profile = analysis.profile
    lines = floated(
        table,
        columns,
        f"{told} {more}" if long else told,
        label(profile.model, profile.backend, profile.mode, key),
        [*([] if long else [more]), *_fused(found, key)],
    )
    return "\n".join([PACKAGES, *lines, ""])


def _fused(rows: Sequence[Row | WorkRow], by: str) -> list[str]:
    """What was fused into the ops of each row: there is hardly room for it in the table."""
    some = [row for row in rows if row.parts]
    names = distinct([row.label for row in some], by=by)
    return [_words.plain(f"{name} {_tables.fused(row.parts)}", 400) for name, row in zip(names, some, strict=True)]


def _names(rows: Sequence[Row | WorkRow], most: int, by: str) -> list[str]:
    """What is written for each row, with what was fused into its ops where there is room for that."""
    names = iter(distinct([row.label for row in rows if row.named], most, by, letters))
    found = []
    for row in rows:
        name = next(names) if row.named else letters(row.label)
        whole = f"{name} {letters(_tables.fused(row.parts))}".strip()
        found.append(whole if len(whole) <= most else name)
    return found
