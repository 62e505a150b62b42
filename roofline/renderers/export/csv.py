"""The table of ops as CSV: a row per op, in order of dispatch, for spreadsheets."""

from __future__ import annotations

from typing import Any

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.renderers._csv import cells
from roofline.renderers._ops import columns

SUFFIX = ".csv"
WORDS = "the table of ops, a row per op"


def written(analysis: Analysis) -> bytes:
    """Numbers in seconds, FLOP and bytes, to 12 digits; unknown is empty."""
    found = columns(analysis)
    rows = zip(*(map(_cell, column.tolist()) for column in found.values()), strict=True)
    return cells.document(list(found), (dict(zip(found, row, strict=True)) for row in rows)).encode()


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return cells.text(value)
    return cells.number(None if value is None or np.isnan(value) else value)
