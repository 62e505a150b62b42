"""Split the busy time of a step by what limits its ops, with the ranges of floors and of shares of roofs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.core.vocabulary import BOUNDS, Bound

#: One flag per op of a profile.
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the ops under one bound [s]; seconds is share time, floor + loss is own time.

    floor to reach: the range of the floor, where the contents of the caches or the time of a launch are not known.
    turning: the part of `seconds` that has another roof above it at the upper end.
    """

    seconds: float
    floor: float
    reach: float
    loss: float
    turning: float

    def __add__(self, times: Times) -> Times:
        return Times(*(getattr(self, field) + getattr(times, field) for field in self.__slots__))

    @property
    def closing(self) -> Times:
        """Scale floor and loss so that they add up to `seconds`: ops that overlapped count by their share.

        Own times of ops that ran at once are more than the time that they ran in; each part is less in proportion.
        """
        own_seconds = self.floor + self.loss
        proportion = self.seconds / own_seconds if own_seconds > 0 else 0.0
        return Times(
            self.seconds, self.floor * proportion, self.reach * proportion, self.loss * proportion, self.turning
        )

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Split `seconds` into the floor, what may be floor or above it, and the rest: what is drawn of a bar [s].

        Ops that ran faster than their floors fill their time; the words say by how much.
        """
        floor, reach = (min(self.seconds, end) for end in (self.closing.floor, self.closing.reach))
        return floor, reach - floor, self.seconds - reach

    @property
    def attained(self) -> float | None:
        """Return floor / own time; None where nothing is costed."""
        own_seconds = self.floor + self.loss
        return self.floor / own_seconds if self.reach > 0 and own_seconds > 0 else None

    @property
    def attained_high(self) -> float | None:
        """Return the upper end of that share."""
        own_seconds = self.floor + self.loss
        return self.reach / own_seconds if self.reach > 0 and own_seconds > 0 else None


def split(analysis: Analysis, among: Mask | None = None) -> dict[Bound, Times]:
    """Split the busy time by bound. Uncosted time is under `unknown`, which has no floor and no loss.

    among: the ops that count, one flag per op; all where it is None.
    """
    table = analysis.table
    turning = table.share * (table.bound_high != table.bound)
    bounds = table.bound if among is None else table.bound[among]
    sums = [
        np.bincount(bounds, weights=weights if among is None else weights[among], minlength=len(BOUNDS))
        for weights in (table.share, table.floor, table.floor_reach, table.loss, turning)
    ]
    return {name: Times(*(float(values[code]) for values in sums)) for code, name in enumerate(BOUNDS)}


def split_at_upper_end(analysis: Analysis, among: Mask | None = None) -> dict[Bound, Times]:
    """Split with the highest floors, as if no cache held anything before: each op under its roof there."""
    table = analysis.table
    own_seconds = table.floor + table.loss
    bounds = table.bound_high if among is None else table.bound_high[among]
    seconds, reach, loss = (
        np.bincount(bounds, weights=weights if among is None else weights[among], minlength=len(BOUNDS)).tolist()
        for weights in (table.share, table.floor_reach, own_seconds - table.floor_reach)
    )
    return {
        name: Times(seconds[code], reach[code], reach[code], loss[code], turning=0.0)
        for code, name in enumerate(BOUNDS)
    }


def ends(times: Times, upper: Times) -> tuple[Times, Times, Times]:
    """Return the ops under one bound at the lower end, these at the upper end, and those under it at the upper end.

    times: by `split`; upper: by `split_at_upper_end`, where other ops may be under it. Each closes.
    """
    low = times.closing
    return low, replace(low, floor=low.reach, loss=low.loss - (low.reach - low.floor)), upper.closing


def attained(times: Times, upper: Times) -> tuple[float, float] | None:
    """Return the range that ops attain of the roof above them, of one bound; None where nothing is costed.

    times: by `split`; upper: by `split_at_upper_end`, where other ops may be under it. Which ops a cache served is open
    for each of them, so that it may be either end, or the ops of the first with the floors of the other.
    """
    shares = [share for share in (times.attained, times.attained_high, upper.attained) if share is not None]
    return (min(shares), max(shares)) if shares else None
