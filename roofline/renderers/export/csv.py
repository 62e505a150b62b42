"""The table of ops as CSV: a row per op, in order of dispatch, for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from roofline.analysis.analysis import WorkAnalysis
from roofline.renderers._csv import cells
from roofline.renderers._ops import columns

SUFFIX = ".csv"
WORDS = "the table of ops, a row per op"


def written(analysis: WorkAnalysis) -> bytes:
    """Numbers in seconds, FLOP and bytes, to 12 digits; unknown is empty."""
    found = columns(analysis)
    return cells.table(list(found), zip(*map(_cells, found.values()), strict=True)).encode()


def _cells(column: NDArray[Any]) -> Iterator[str]:
    """The cells of a column; what is often in it is written once."""
    values = [None if value != value else value for value in column.tolist()]  # of NaN each is another one
    known = {value: _cell(value) for value in dict.fromkeys(values)}
    return map(known.__getitem__, values)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return cells.text(value)
    # 0 and -0 are one value of a column.
    return cells.number(None if value is None else value + 0.0)
