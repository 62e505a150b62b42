"""Average how many times as fast one backend is as another, over the rows of a preset in which both were measured."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from roofline.published.means import Mean, mean
from roofline.published.presets.compared import ComparedRow, PresetRows


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendMean:
    """The means of baseline's time / backend's, by the publication's statistic, over the rows that have both.

    mean: None below two rows. Left out are rows where the two are not comparable, where one of them has several runs,
    of which none is the one that is meant, and where one of them was not measured.
    """

    baseline: str
    backend: str
    mean: Mean | None
    not_comparable: int
    several: int
    absent: int


def averages(preset_rows: PresetRows) -> tuple[BackendMean, ...]:
    """Compare every two backends that two rows or more have both of; the publication's baseline comes first."""
    ordered = sorted({run.profile.backend for row in preset_rows.compared for run in row.ranking.runs})
    columns = {column.backend: column.name for column in preset_rows.preset.column}
    places = list(columns)
    ordered.sort(key=lambda name: places.index(name) if name in columns else len(places))
    ordered.sort(key=lambda name: columns.get(name) != preset_rows.publication.baseline)
    means = (_mean(preset_rows, baseline, backend) for baseline, backend in combinations(ordered, 2))
    return tuple(backend_mean for backend_mean in means if backend_mean is not None)


def _mean(preset_rows: PresetRows, baseline: str, backend: str) -> BackendMean | None:
    shared_rows = [row for row in preset_rows.compared if row.of(baseline) and row.of(backend)]
    if len(shared_rows) < 2:
        return None
    single = [row for row in shared_rows if len(row.of(baseline)) == len(row.of(backend)) == 1]
    ratios = [ratio for row in single if (ratio := _ratio(row, baseline, backend)) is not None]
    return BackendMean(
        baseline=baseline,
        backend=backend,
        mean=mean(backend, ratios) if len(ratios) > 1 else None,
        not_comparable=len(single) - len(ratios),
        several=len(shared_rows) - len(single),
        absent=len(preset_rows.compared) + len(preset_rows.alone) - len(shared_rows),
    )


def _ratio(row: ComparedRow, baseline: str, backend: str) -> float | None:
    """Return how many times as long one backend takes as the other; None where they are not comparable."""
    (slower,), (faster,) = row.of(baseline), row.of(backend)
    if row.ranking.verdicts[slower][faster] == "not comparable":
        return None
    return row.means[slower] / row.means[faster]
