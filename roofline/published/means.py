"""Averages over the rows of a table: of ratios, for times of unlike tasks have no average that means something.

The arithmetic mean of ratios favours whoever stands in the denominator; the geometric mean does not, and the mean of
A/B is one over that of B/A.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from roofline.published.publication import Cell, Publication


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean speedup of a column over the baseline, over the `rows` that both have."""

    column: str
    rows: int
    arithmetic: float
    geometric: float


def speedups(publication: Publication) -> tuple[Mean, ...]:
    """Compare every other column with the baseline, in the first version of the table; empty without a baseline."""
    if not publication.baseline:
        return ()
    cells = [cell for cell in publication.cells if cell.version == publication.versions[0]]
    base = _by_row(cell for cell in cells if cell.column == publication.baseline)
    means = []
    for column in dict.fromkeys(cell.column for cell in cells if cell.column != publication.baseline):
        times = _by_row(cell for cell in cells if cell.column == column)
        ratios = [base[row] / times[row] for row in base if row in times]
        if ratios:
            means.append(mean(column, ratios))
    return tuple(means)


def mean(column: str, ratios: Sequence[float]) -> Mean:
    """Return the means of a column's ratios, one per row. Raises ValueError for none."""
    return Mean(column=column, rows=len(ratios), arithmetic=fmean(ratios), geometric=geometric_mean(ratios))


def _by_row(cells: Iterable[Cell]) -> dict[tuple[str, str, str], float]:
    """Return the times [s] by task, batch and hardware."""
    return {(cell.task, cell.batch, cell.hardware): cell.seconds for cell in cells if cell.seconds is not None}
