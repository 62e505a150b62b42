"""Averages over the rows of a table: of ratios, for times of unlike tasks have no average that means something.

The arithmetic mean of ratios favours whoever stands in the denominator; the geometric mean does not, and the mean of
A/B is one over that of B/A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from roofline.published.publication import Publication


@dataclass(frozen=True, slots=True)
class Row:
    """Hold the columns of a row of the table against one of them: how many times as fast each with a time is."""

    task: str
    batch: str
    hardware: str
    ratios: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean speedup of a column over the baseline, over the `rows` that both have."""

    column: str
    rows: int
    arithmetic: float
    geometric: float


def rows_over(publication: Publication, baseline: str) -> tuple[Row, ...]:
    """Compare every other column with one, row by row, in the first version of the table.

    Of a column that was run several times it is the fastest run.
    """
    times: dict[tuple[str, str, str], dict[str, float]] = {}
    for cell in publication.cells:
        if cell.version == publication.versions[0] and cell.seconds is not None:
            row = times.setdefault((cell.task, cell.batch, cell.hardware), {})
            row[cell.column] = min(cell.seconds, row.get(cell.column, cell.seconds))
    return tuple(
        Row(*place, {column: row[baseline] / seconds for column, seconds in row.items() if column != baseline})
        for place, row in times.items()
        if baseline in row
    )


def speedups(publication: Publication) -> tuple[Mean, ...]:
    """Compare every other column with the baseline, in the first version of the table; empty without a baseline."""
    ratios: dict[str, list[float]] = {cell.column: [] for cell in publication.cells}
    for row in rows_over(publication, publication.baseline):
        for column, ratio in row.ratios.items():
            ratios[column].append(ratio)
    return tuple(mean(column, values) for column, values in ratios.items() if values)


def mean(column: str, ratios: Sequence[float]) -> Mean:
    """Return the means of a column's ratios, one per row. Raises ValueError for none."""
    return Mean(column=column, rows=len(ratios), arithmetic=fmean(ratios), geometric=geometric_mean(ratios))
