"""The tables of a run by each key: group, class, phase, block, scope, op, kernel, source."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.analysis.analysis import KEYS
from roofline.renderers import _tables, _words
from roofline.renderers._facts import notes
from roofline.renderers._tables import Column, Row
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, each, section

#: Where a reader looks first stands first; the rest in the order of `analysis.KEYS`.
_FIRST = ("group", "class", "phase", "block")
_LONGEST = {"scope": 70, "op": 90, "kernel": 90}


def groups(runs: Sequence[Run]) -> Html:
    """The section: the tables of `roofline show --by KEY`, one at a time on a screen."""
    return section("tables", "By group, class, layer and kernel", each(runs, _run))


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
    build = _timed if run.analysis.timed else _counted
    panels = [
        tag("div", build(run, key), class_="panel" if key == keys[0] else "panel later", data_panel=key) for key in keys
    ]
    return tag("div", choice, tag("div", panels, data_of=f"{run.key}-by"), tag("p", _note(run), class_="note"))


def _note(run: Run) -> str:
    return notes.caption(run.analysis) if run.analysis.timed else f"{_words.device(run.analysis)}."


def _timed(run: Run, key: str) -> Html:
    analysis = run.analysis
    rows = _tables.rows(analysis, key, _words.gap_name(analysis))
    columns = list(_tables.columns(analysis))
    if key in _tables.LONG:
        columns.insert(0, Column("ops", lambda row: "" if row.ops is None else units.count(row.ops)))
    heads = [head(key, number=False), *(head(each.heading.replace("\n", " "), each.number) for each in columns)]
    *body, gap, total = [_row(row, key, columns) for row in rows]
    return table(f"By {key}", heads, body, f"Table by {key}", [gap, total])


def _row(row: Row, key: str, columns: Sequence[Column]) -> Html:
    parts = _tables.fused(row.parts)
    label = [name(row.label, _LONGEST.get(key, 60), end=key == "scope")]
    if parts:
        label.append(tag("small", name(parts, 100)))
    cells = [cell(column.cell(row), column.number) for column in columns]
    return tag("tr", tag("th", label, scope="row"), *cells)


def _counted(run: Run, key: str) -> Html:
    """The work of a step that was only counted."""
    analysis = run.analysis
    sums = list(analysis.by(key).items())
    heads = ("ops", "model", "executed", "vector", "read", "written")
    kept = sums[: _tables.TOP] if key in _tables.LONG else sums
    rows = []
    for label, total in [*kept, ("total", analysis.total)]:
        work = (total.model_flops, total.flops, total.vector_flops) if total.costed else (None, None, None)
        moved = (total.bytes_read, total.bytes_written) if total.costed else (None, None)
        cells = [units.count(total.ops), *map(units.flop, work), *map(units.byte, moved)]
        rows.append(
            tag("tr", tag("th", name(label, _LONGEST.get(key, 60), key == "scope"), scope="row"), map(cell, cells))
        )
    left = len(sums) - len(kept)
    caption = f"By {key}" + (f", without {left} more that work less" if left else "")
    return table(caption, [head(key, number=False), *map(head, heads)], rows[:-1], f"Table by {key}", rows[-1:])
