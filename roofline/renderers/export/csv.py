"""Write the table of ops as CSV: a row per op, in order of dispatch, for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from roofline.analysis.analysis import WorkAnalysis
from roofline.content.ops import columns
from roofline.renderers._csv import cells

SUFFIX = ".csv"
WORDS = "the table of ops, a row per op"


def written(analysis: WorkAnalysis) -> bytes:
    """Write numbers in seconds, FLOP and bytes, to 12 digits; unknown is empty."""
    columns_by_name = columns(analysis)
    return cells.table(list(columns_by_name), zip(*map(_cells, columns_by_name.values()), strict=True)).encode()


def _cells(column: NDArray[Any]) -> Iterator[str]:
    """Write the cells of a column; a repeated value is formatted once."""
    values = [None if value != value else value for value in column.tolist()]  # of NaN each is another one
    cell_of = {value: _cell(value) for value in dict.fromkeys(values)}
    return map(cell_of.__getitem__, values)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return cells.text(value)
    # 0 and -0 are one value of a column.
    return cells.number(None if value is None else value + 0.0)
