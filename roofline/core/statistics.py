"""Summaries and intervals, by numpy and with a fixed seed, so that the same profile always gives the same figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = Sequence[float] | NDArray[np.float64]

RESAMPLES = 2000
#: What sums of times and of work that are equal differ by at most, as a share of them.
ROUNDING = 1e-9
_SEED = 20240229
#: More values than these are not drawn one by one. By choice: so many take 160 MB.
_MANY = 10_000


def generator(*of: Floats | str) -> np.random.Generator:
    """Seed a generator that starts at the same place each time: for the same data, where some is given."""
    salts = [crc32(part.encode() if isinstance(part, str) else np.asarray(part, np.float64).tobytes()) for part in of]
    return np.random.default_rng([_SEED, *salts] if salts else _SEED)


def resample(values: Sequence[float], rng: np.random.Generator, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Indices' worth of resampled values: shape (resamples, len(values)), drawn with replacement."""
    array = np.asarray(values, np.float64)
    return array[rng.integers(0, len(array), (resamples, len(array)))]


def medians(values: Sequence[float], rng: np.random.Generator, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Return the medians of resamples, shape (resamples,).

    Of many values a resample is not drawn as a whole: its middle one is the value whose rank is the middle one of as
    many even draws, and those are beta-distributed (David and Nagaraja, Order Statistics, 2003, chapter 2). That is the
    same distribution, without a table of all resamples.
    """
    number = len(values)
    if number <= _MANY:
        return _middles(resample(values, rng, resamples))
    ordered = np.sort(np.asarray(values, np.float64))
    below = (number + 1) // 2  # the rank of the middle draw, or of the lower one of two
    lower = rng.beta(below, number + 1 - below, resamples)
    # Above that one there are as many draws as are left, evenly: the next is the least of them.
    upper = lower + (1 - lower) * rng.beta(1, number - below, resamples)
    ranks = (lower, lower if number % 2 else upper)
    low, high = (ordered[np.minimum((rank * number).astype(np.int64), number - 1)] for rank in ranks)
    return np.asarray((low + high) / 2, np.float64)


def median_interval(values: Sequence[float], processes: Sequence[Sequence[float]] = ()) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the median; None below 3 values.

    processes: the same from further processes, whose memory lies elsewhere and whose threads are placed anew: then
    processes are resampled too, and the interval holds for the median of another one.
    """
    if len(values) < 3:
        return None
    rng = generator()
    per_process = [medians(times, rng) for times in (values, *processes) if len(times)]
    chosen = rng.integers(0, len(per_process), (RESAMPLES, len(per_process)))
    drawn = np.stack(per_process, axis=1)[np.arange(RESAMPLES)[:, None], chosen]
    low, high = np.percentile(_middles(drawn), (2.5, 97.5))
    return float(low), float(high)


def _middles(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each row, and sort the rows: of thousands of short ones numpy's own takes far longer."""
    draws.sort(axis=1)
    number = draws.shape[1]
    return (draws[:, (number - 1) // 2] + draws[:, number // 2]) / 2


def mean_difference_interval(values: Sequence[float], *baselines: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of mean(values) - mean(baseline); None below 3 values of either.

    baselines: measured at several times, between which a machine becomes faster or slower: each draw takes one of
    them, so that what they differ by is in the interval.
    """
    usable = [baseline for baseline in baselines if len(baseline) >= 3]
    if len(values) < 3 or not usable:
        return None
    rng = generator()
    means = [resample(measurement, rng).mean(axis=1) for measurement in usable]
    resampled = np.stack(means, axis=1)[np.arange(RESAMPLES), rng.integers(0, len(means), RESAMPLES)]
    low, high = np.percentile(resample(values, rng).mean(axis=1) - resampled, (2.5, 97.5))
    return float(low), float(high)


def gap_interval(walls: Sequence[float], busy: Floats, step_times: Floats) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of median(walls) - scale * mean(busy); None below 3 of either.

    busy, step_times: of each profiled step, resampled together, because the scale min(1, wall / mean(step_times)) ties
    the two.
    """
    if len(walls) < 3 or len(busy) < 3:
        return None
    rng = generator()
    wall = medians(walls, rng)
    chosen = rng.integers(0, len(busy), (RESAMPLES, len(busy)))
    mean = np.asarray(step_times, np.float64)[chosen].mean(axis=1)
    # Steps that took nothing are not scaled: there is nothing to scale.
    scale = np.minimum(1.0, np.divide(wall, mean, out=np.ones_like(wall), where=mean > 0))
    low, high = np.percentile(wall - scale * np.asarray(busy, np.float64)[chosen].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


@cache
def student(freedom: int, level: float = 0.95) -> float:
    """Return the t that |t| of Student's distribution stays below with probability `level`.

    By bisection of its distribution, a finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 4).
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < level:
        low, high = high, 2 * high
    while high - low > ROUNDING * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return the probability that |t| of Student's distribution is below `t`."""
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for number in range(1, (freedom - odd) // 2 + 1):
        total += term
        term *= math.cos(angle) ** 2 * (2 * number / (2 * number + 1) if odd else (2 * number - 1) / (2 * number))
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
