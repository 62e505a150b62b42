"""Tell ranks that differ from ranks that are alike: two tests, each of which is wrong of one in a hundred jobs."""

from __future__ import annotations

import numpy as np

from roofline.core.arrays import Array, Bools

#: How often each test takes ranks that are alike for different, and how many sets of numbers are drawn for one of them.
FALSE_ALARM, _DRAWN = 0.01, 5000
#: Collectives whose order is tested: more of them, spread evenly, tell no more. By choice.
_TESTED = 400


def is_late(duration: Array, took_part: Bools, row: int) -> bool:
    """Test whether a rank arrives late more often than the latest of ranks that arrive in random order would.

    duration, took_part: of shape [ranks, collectives]; who arrives last has the shortest collective. The places of one
    rank in random orders add up as uniform numbers do, which is computed; of all ranks one is so late at most as many
    times as often as there are ranks.
    """
    tested = np.unique(np.linspace(0, duration.shape[1] - 1, _TESTED).astype(np.int64))
    duration, took_part = duration[:, tested], took_part[:, tested]
    mine = duration[row]
    below = (took_part & (duration < mine)).sum(0)
    ties = (took_part & (duration == mine)).sum(0) - 1
    place = float((below + ties / 2).sum())  # equal ones share their places
    chances = np.ones(1)
    for ranks in took_part.sum(0).tolist():
        summed = np.cumsum(np.append(chances, np.zeros(ranks - 1)))
        chances = (summed - np.append(np.zeros(ranks), summed)[: len(summed)]) / ranks
    as_late = float(chances[: int(place) + 1].sum())
    return as_late * int(took_part.any(1).sum()) < FALSE_ALARM


def is_lowest(lowest: float, further: Array) -> bool:
    """Test whether a number is further below the others than the lowest of as many normal ones is, by Dixon's Q."""
    if len(further) < 2 or further.max() <= lowest:
        return False
    gap = (further.min() - lowest) / (further.max() - lowest)
    drawn = np.sort(np.random.default_rng(0).normal(size=(_DRAWN, 1 + len(further))), axis=1)
    as_low = int(((drawn[:, 1] - drawn[:, 0]) / (drawn[:, -1] - drawn[:, 0]) >= gap).sum())
    return (as_low + 1) / (_DRAWN + 1) < FALSE_ALARM
