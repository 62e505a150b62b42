"""Write CSV with one row per label and every field of the JSON document, for spreadsheets and data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import json_document
from roofline.content.choice import Choice, chosen
from roofline.renderers._csv import cells


def render(analysis: WorkAnalysis, by: str | None, rows: Choice | None = None) -> str:
    """Write numbers in seconds, FLOP and bytes, to 12 digits; unknown is empty; nested fields get dotted names.

    rows: the rows to write; all others are summed in one more, so that columns add up. By default all, by time, and
    those of a step that was counted and not timed by FLOP.
    """
    key = by or "group"
    size = "time" if isinstance(analysis, Analysis) else "flop"
    selection = chosen(analysis, key, Choice(every=True, sort=size) if rows is None else rows)
    lines = [
        {key: cells.text(label)} | _parts(selection.fused, label) | _flat(json_document.total(total, analysis))
        for label, total in (*selection.shown.items(), *selection.remainders)
    ]
    # Not every row evaluates every function: their columns are those of all rows, in a fixed place.
    functions = sorted({name for line in lines for name in line if name.startswith("transcendentals.")})
    empty = {key: ""} | _parts(selection.fused, "") | _flat(json_document.total(analysis.total, analysis))
    fields = [name for name in empty if not name.startswith("transcendentals.")]
    place = fields.index("vector_flops") + 1
    return cells.document([*fields[:place], *functions, *fields[place:]], lines)


def _parts(fused: Mapping[str, tuple[str, ...]], label: str) -> dict[str, str]:
    """Add a column with the ops fused into those of a row, where any row has such ops."""
    return {"constituents": cells.text("; ".join(fused.get(label, ())))} if fused else {}


def _flat(row: dict[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{cells.text(part)}": cells.number(number) for part, number in value.items()}
        else:
            flat[name] = cells.number(value)
    return flat
