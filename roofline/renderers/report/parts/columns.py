"""Columns of a long table for the script of the page: each distinct text once, and numbers to sort by.

Texts are written here, by what writes the text output, and the script only shows them: so they cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from roofline.renderers._words import plain
from roofline.renderers.report.parts.html import TITLE


def texts(values: Iterable[str]) -> dict[str, Any]:
    """A column of texts: what there is, and of each row its number."""
    known: dict[str, int] = {}
    rows = [known.setdefault(value, len(known)) for value in values]
    return {"texts": list(known), "rows": rows}


def names(values: Iterable[str], width: int = TITLE) -> dict[str, Any]:
    """A column of names from a profile, each made printable once and cut to `width`."""
    column = texts(values)
    column["texts"] = [plain(name, width) for name in column["texts"]]
    return column


def numbers(values: Iterable[float | None]) -> list[float | None]:
    """A column to sort by: six digits; unknown is null, which comes last."""
    return [None if value is None or not math.isfinite(value) else float(f"{value:.6g}") for value in values]
