"""Write the tables of a run by each key: group, class, phase, block, scope, op, kernel, source."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.analysis.analysis import KEYS, Analysis
from roofline.content import tables
from roofline.content.facts import notes
from roofline.content.tables import Column, Row, WorkRow
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, for_each_run, section

#: Where a reader looks first stands first; the rest in the order of `analysis.KEYS`.
_FIRST = ("group", "class", "phase", "block")
#: Letters of a name.
_LONGEST = {"scope": 70, "op": 90, "kernel": 90}


def groups(runs: Sequence[Run]) -> Html:
    """Write the section: the tables of `roofline show --by KEY`, one at a time on a screen."""
    return section("tables", "By group, class, layer and kernel", for_each_run(runs, _run))


def _run(run: Run) -> Html:
    keys = [*_FIRST, *(key for key in KEYS if key not in _FIRST)]
    choices = [
        tag(
            "label",
            tag("input", type="radio", name=f"{run.key}-by", value=key, checked=key == keys[0]),
            tag("span", key),
        )
        for key in keys
    ]
    choice = tag("fieldset", tag("legend", "by"), choices, class_="choice screen", data_panels=f"{run.key}-by")
    panels = [
        tag("div", _table(run, key), class_="panel" if key == keys[0] else "panel later", data_panel=key)
        for key in keys
    ]
    note = tag("p", notes.caption(run.analysis), class_="note")
    return tag("div", choice, tag("div", panels, data_of=f"{run.key}-by"), note)


def _table(run: Run, key: str) -> Html:
    analysis = run.analysis
    content = tables.table(analysis, key)
    columns = list(content.columns)
    if key in tables.LONG and isinstance(analysis, Analysis):
        columns.insert(0, tables.NUMBER)
    heads = [head(key, number=False), *(head(column.heading.replace("\n", " "), column.number) for column in columns)]
    names = content.names(_LONGEST.get(key, 60), key)
    rows = [_row(row, short, columns) for row, short in zip(content.rows, names, strict=True)]
    body, sums = rows[: len(rows) - content.sums], rows[len(rows) - content.sums :]
    return table(f"By {key}", heads, body, f"Table by {key}", sums)


def _row(row: Row | WorkRow, short: str, columns: Sequence[Column]) -> Html:
    """Write a row. short: its name, written short."""
    parts = tables.fused(row.parts)
    label = [name(row.label, short=short)]
    if parts:
        label.append(tag("small", name(parts, 100)))
    cells = [cell(column.cell(row), column.number) for column in columns]
    return tag("tr", tag("th", label, scope="row"), *cells)
