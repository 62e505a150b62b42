"""The table of ops as CSV: a row per op, in order of dispatch, for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.renderers._ops import columns

SUFFIX = ".csv"
WORDS = "the table of ops, a row per op"
_FORMULA = ("=", "+", "-", "@")


def written(analysis: Analysis) -> bytes:
    """Numbers in seconds, FLOP and bytes, to 12 digits; unknown is empty."""
    found = columns(analysis)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(found)
    writer.writerows(zip(*(map(_cell, column.tolist()) for column in found.values()), strict=True))
    return stream.getvalue().encode()


def _cell(value: Any) -> str:
    """A spreadsheet runs a cell that begins like a formula, unless an apostrophe comes first."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return f"{value:.12g}"
