"""Split the time of ops that ran at the same time, on the source and on the target.

The ratio of an op scales its own time; the time shared with other ops is then subtracted. If two ops overlap, the same
fraction of the shorter one is hidden there as here, whichever is shorter there, and never more than both last. So a
short op behind a long one stays hidden, and where both change alike the overlap changes with them.

If a projected op overlaps one that cannot be projected, it keeps the shared time, on both devices: of the other op
only the time in which no projected op ran is left out. The op that hides it is taken to hide it there, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.arrays import Array
from roofline.core.rows import Ints, rows
from roofline.core.schema import Profile
from roofline.projection.roofs import divide

#: Number of overlapping pairs per op after which the search stops, so that no trace takes for ever.
_PAIRS = 200
#: Share of its time that an op loses to another one that overlaps all of it: each has half.
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class ShareTimes:
    """Hold the share time of each op [s], unscaled; shape (ops,).

    seconds_here: of an op that is not projected, only the time without projected ops; seconds_there: of projected ops;
    hidden: the part of their own time there that other projected ops take. other_roof: the share of their own time
    there that ops under another roof take: two ops that one ceiling binds cannot both run at it at once.
    """

    seconds_here: Array
    seconds_there: Array
    hidden: Array
    other_roof: Array


def share_times(
    profile: Profile, durations: Array, overlap: Array, carried: NDArray[np.bool_], ratio: Array, roof: Ints
) -> ShareTimes:
    """Compute the share times of all ops here and there.

    durations, overlap: own time of each op, and the part that other ops share [s]; ratio: own time there over own time
    here, of the `carried` ops; roof: the row of the roof that binds an op there.
    """
    share, after = durations - overlap, np.where(carried, durations * ratio, 0.0)
    earlier, later, seconds = _overlapping_pairs(profile, overlap)
    size = len(durations)

    def of_ops(pair_seconds: Array, chosen: NDArray[np.bool_]) -> Array:
        """Sum over the pairs of each op; shape (ops,)."""
        sums: Array = np.zeros(size)
        for end in (earlier, later):
            sums += np.bincount(end[chosen], pair_seconds[chosen], size)
        return sums

    together = of_ops(seconds, np.ones(len(earlier), bool))
    overlap_share = divide(overlap, together, overlap > 0)
    mixed = carried[earlier] != carried[later]
    carries, not_carried = (
        np.where(carried[earlier], earlier, later)[mixed],
        np.where(carried[earlier], later, earlier)[mixed],
    )
    asked = overlap_share[carries] * seconds[mixed]
    wanted = np.zeros(size) + np.bincount(not_carried, asked, size)
    # Of k ops at once each has 1 / k: it loses k - 1 times what it has, and meets k times what it loses of them.
    many = np.round(divide(together, overlap, overlap > 0))
    had = divide(overlap, many - 1, many > 1)
    granted = np.minimum(wanted, np.clip(had, 0.0, np.maximum(share, 0.0)))
    back = np.bincount(carries, asked * divide(granted, wanted, wanted > 0)[not_carried], size)
    seconds_here = share + back - granted

    both_carried = carried[earlier] & carried[later]
    long: Array = np.array(rows(profile).own.reshape(size, -1)[:, 0] * 1e-9 if len(earlier) else durations, np.float64)
    lasts = long * ratio
    shorter = np.minimum(long[earlier], long[later])
    pair_there = divide(seconds, shorter, both_carried) * np.minimum(lasts[earlier], lasts[later])
    before, there_all = of_ops(seconds, both_carried), of_ops(pair_there, both_carried)
    room = lasts * np.maximum(1.0, divide(before, long, long > 0))
    fits = np.where(there_all > room, divide(room, there_all, there_all > 0), 1.0)
    pair_there = pair_there * np.minimum(fits[earlier], fits[later])
    there_all = of_ops(pair_there, both_carried)
    hidden = (durations - seconds_here) * np.where(before > 0, divide(there_all, before, before > 0), ratio)
    limit = after * np.maximum(_HALF, divide(overlap, durations, durations > 0))
    hidden = np.where(carried, np.where(before > 0, np.minimum(hidden, limit), hidden), 0.0)
    elsewhere = of_ops(pair_there, both_carried & (roof[earlier] != roof[later]))
    other_roof = np.where(before > 0, divide(elsewhere, there_all, there_all > 0), 1.0)
    return ShareTimes(seconds_here, after - hidden, hidden, divide(hidden * other_roof, after, hidden > 0))


def _overlapping_pairs(profile: Profile, overlap: Array) -> tuple[Ints, Ints, Array]:
    """Find the pairs of ops that overlap in the profiled step whose starts are saved, and for how long [s].

    Returns the row of the op that starts first, the row of the other one, and seconds; shape (pairs,). No pair where
    the starts are not known: an op then stays hidden by the same share of its own time.
    """
    nothing: Ints = np.zeros(0, np.int64)
    of = rows(profile)
    rows_ = np.flatnonzero(overlap > 0)
    if len(rows_) < 2 or not of.start.any():
        return nothing, nothing, np.zeros(0)
    rows_ = rows_[np.argsort(of.start[rows_], kind="stable")]
    start = of.start[rows_]
    end = start + of.own.reshape(len(profile.ops), -1)[rows_, 0]
    earlier_rows, later_rows, times = [], [], []
    at, ahead, pairs = np.arange(len(rows_)), 1, 0
    while pairs <= _PAIRS * len(rows_):
        at = at[at + ahead < len(rows_)]
        at = at[start[at + ahead] < end[at]]
        if not len(at):
            break
        earlier_rows.append(rows_[at])
        later_rows.append(rows_[at + ahead])
        times.append(np.minimum(end[at], end[at + ahead]) - start[at + ahead])
        pairs, ahead = pairs + len(at), ahead + 1
    if not earlier_rows:
        return nothing, nothing, np.zeros(0)
    earlier, later, seconds = np.concatenate(earlier_rows), np.concatenate(later_rows), np.concatenate(times)
    overlapping = seconds > 0
    return earlier[overlapping], later[overlapping], seconds[overlapping] * 1e-9
