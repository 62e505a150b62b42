"""Write columns of a long table for the script of the page: each distinct text once, and numbers to sort by.

Texts are written by the functions of the text output, and the script only shows them: so they cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from roofline.content.wording import plain
from roofline.renderers.report.parts.html import TITLE


def texts(values: Iterable[str]) -> dict[str, Any]:
    """Write a column of texts: the different ones, and of each row its number among them."""
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"texts": list(numbers), "rows": rows}


def written(write: Callable[..., str], *values: Iterable[Any]) -> dict[str, Any]:
    """Write a column by a function of one value or more, which is called once for each different one."""
    rows = list(zip(*values, strict=True))
    cells = {row: write(*row) for row in dict.fromkeys(rows)}
    return texts(cells[row] for row in rows)


def names(values: Iterable[str], width: int = TITLE) -> dict[str, Any]:
    """Write a column of names from a profile, each made printable once and cut to `width`."""
    column = texts(values)
    column["texts"] = [plain(name, width) for name in column["texts"]]
    return column


def numbers(values: Iterable[float | None]) -> list[float | None]:
    """Write a column to sort by: six digits; unknown is null, which comes last."""
    return [None if value is None or not math.isfinite(value) else float(f"{value:.6g}") for value in values]
