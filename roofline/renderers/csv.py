"""CSV with one row per label and every field of the JSON document, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from typing import Any

from roofline.analysis.analysis import Analysis
from roofline.renderers import _document, _tables
from roofline.renderers._words import plain

_FORMULA = ("=", "+", "-", "@")


def render(analysis: Analysis, by: str | None) -> str:
    """Numbers in seconds, FLOP and bytes, to 12 digits; unknown is empty; nested fields get dotted names."""
    key = by or "group"
    fused = analysis.fused(key) if key in _tables.OPS else {}
    rows = [
        {key: _text(label)} | _parts(fused, label) | _flat(_document.total(total))
        for label, total in sorted(analysis.by(key).items(), key=lambda item: -item[1].seconds)
    ]
    # Not every row evaluates every function: their columns are those of all rows, in a fixed place.
    functions = sorted({name for row in rows for name in row if name.startswith("transcendentals.")})
    empty = {key: ""} | _parts(fused, "") | _flat(_document.total(analysis.total))
    fields = [name for name in empty if not name.startswith("transcendentals.")]
    place = fields.index("vector_flops") + 1
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fields[:place] + functions + fields[place:], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _parts(fused: dict[str, tuple[str, ...]], label: str) -> dict[str, str]:
    """A column with what was fused into the ops of a row, where anything was into any of them."""
    return {"constituents": _text("; ".join(fused.get(label, ())))} if fused else {}


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{_text(part)}": f"{number:.12g}" for part, number in value.items()}
        else:
            flat[name] = "" if value is None else f"{value:.12g}"
    return flat


def _text(value: str) -> str:
    """A name as text: spreadsheets run a cell that begins like a formula, unless an apostrophe comes first."""
    value = plain(value)
    return f"'{value}" if value.startswith(_FORMULA) else value
