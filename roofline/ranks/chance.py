"""Tell ranks that differ from ranks that are alike: two tests, one of which is wrong of one job in twenty."""

from __future__ import annotations

import numpy as np

from roofline.core.arrays import Array, Bools

#: How often each test takes ranks that are alike for different: both together as often as a 95 % interval misses. And
#: how many sets of numbers are drawn for one of them.
FALSE_ALARM, _DRAWN = 0.025, 5000


def is_late(duration: Array, took_part: Bools, row: int) -> bool:
    """Test whether a rank arrives last more often than any rank would by chance.

    duration, took_part: of shape [ranks, collectives]; who arrives last has the shortest collective. By chance each of
    the ranks of a collective is the last as often as another; of all ranks one is it so often at most as many times as
    often as there are ranks. Where several are the last together none counts.
    """
    last = took_part & (duration == np.where(took_part, duration, np.inf).min(0))
    times, chances = int((last[row] & (last.sum(0) == 1)).sum()), np.ones(1)
    for ranks, collectives in zip(*np.unique(took_part.sum(0), return_counts=True), strict=True):
        chances = np.convolve(chances, _binomial(int(collectives), 1 / int(ranks)))
    return float(chances[times:].sum()) * int(took_part.any(1).sum()) < FALSE_ALARM


def _binomial(number: int, chance: float) -> Array:
    """Return how likely each number of hits is, 0 to `number`, where each of so many hits with a chance below 1."""
    factorial = np.append(0.0, np.cumsum(np.log(np.arange(1, number + 1))))
    hits = np.arange(number + 1)
    ways = factorial[number] - factorial - factorial[::-1]
    return np.asarray(np.exp(ways + hits * np.log(chance) + (number - hits) * np.log1p(-chance)))


def is_lowest(lowest: float, further: Array) -> bool:
    """Test whether a number is further below the others than the lowest of as many normal ones is, by Dixon's Q."""
    if len(further) < 2 or further.max() <= lowest:
        return False
    gap = (further.min() - lowest) / (further.max() - lowest)
    drawn = np.sort(np.random.default_rng(0).normal(size=(_DRAWN, 1 + len(further))), axis=1)
    as_low = int(((drawn[:, 1] - drawn[:, 0]) / (drawn[:, -1] - drawn[:, 0]) >= gap).sum())
    return (as_low + 1) / (_DRAWN + 1) < FALSE_ALARM
