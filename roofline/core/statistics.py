"""Summaries and intervals, by numpy and with a fixed seed, so that the same profile always gives the same figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_SEED = 20240229


def generator() -> np.random.Generator:
    """A generator that starts at the same place each time."""
    return np.random.default_rng(_SEED)


def resample(values: Sequence[float], rng: np.random.Generator, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Indices' worth of resampled values: shape (resamples, len(values)), drawn with replacement."""
    array = np.asarray(values, np.float64)
    return array[rng.integers(0, len(array), (resamples, len(array)))]


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of the median; None below 3 values."""
    if len(values) < 3:
        return None
    low, high = np.percentile(np.median(resample(values, generator()), axis=1), (2.5, 97.5))
    return float(low), float(high)


def difference_interval(walls: Sequence[float], busy: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of median(walls) - mean(busy); None below 3 of either."""
    if len(walls) < 3 or len(busy) < 3:
        return None
    rng = generator()
    gaps = np.median(resample(walls, rng), axis=1) - resample(busy, rng).mean(axis=1)
    low, high = np.percentile(gaps, (2.5, 97.5))
    return float(low), float(high)
