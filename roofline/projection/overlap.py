"""What ops that ran at the same time take of a step, here and there.

An op attains what it attains in its own time, so that time is what its ratio carries. What of it other ops share is
then taken off again. Of two ops that ran side by side as much of the shorter one is hidden there as here: whichever is
shorter there, and never more than both last. So a short op behind a long one stays hidden, and where both change alike
the overlap changes with them.

Beside an op that is not carried the carried one counts whole, on both sides: of the other one only the time in which
nothing that is carried ran is left out. What hides it is taken to hide it there, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.rows import Ints, rows
from roofline.core.schema import Profile
from roofline.projection.roofs import Array, divide

#: Pairs of ops that ran side by side are looked for until there are so many per op, so that no trace takes for ever.
_PAIRS = 200
#: Of two ops side by side each has half of the time: what an op loses to one that takes all of its time.
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Shared:
    """What each op takes of the step [s], unscaled.

    here: of ops that are not carried what is left beside the carried ones; there, hidden: of carried ops their time and
    what of their own time other carried ops have there. apart: the share of their own time there that those under
    another roof have: two ops that one ceiling binds cannot both be at it at once.
    """

    here: Array
    there: Array
    hidden: Array
    apart: Array


def shared(
    profile: Profile, own: Array, overlap: Array, carried: NDArray[np.bool_], ratio: Array, roof: Ints
) -> Shared:
    """What ops take of the step here and there.

    own, overlap: of each op [s]; ratio: its own time there over that here, of those that are `carried`; roof: which one
    binds it there.
    """
    share, after = own - overlap, np.where(carried, own * ratio, 0.0)
    one, other, seconds = _pairs(profile, overlap)
    size = len(own)

    def of_ops(each: Array, chosen: NDArray[np.bool_]) -> Array:
        """The sum over the pairs of each op."""
        found: Array = np.zeros(size)
        for end in (one, other):
            found += np.bincount(end[chosen], each[chosen], size)
        return found

    together = of_ops(seconds, np.ones(len(one), bool))
    beside = divide(overlap, together, overlap > 0)
    mixed = carried[one] != carried[other]
    carries, left = np.where(carried[one], one, other)[mixed], np.where(carried[one], other, one)[mixed]
    asked = beside[carries] * seconds[mixed]
    wanted = np.zeros(size) + np.bincount(left, asked, size)
    # Of k ops at once each has 1 / k: it loses k - 1 times what it has, and meets k times what it loses of them.
    many = np.round(divide(together, overlap, overlap > 0))
    had = divide(overlap, many - 1, many > 1)
    given = np.minimum(wanted, np.clip(had, 0.0, np.maximum(share, 0.0)))
    back = np.bincount(carries, asked * divide(given, wanted, wanted > 0)[left], size)
    here = share + back - given

    both = carried[one] & carried[other]
    long: Array = np.array(rows(profile).own.reshape(size, -1)[:, 0] * 1e-9 if len(one) else own, np.float64)
    lasts = long * ratio
    shorter = np.minimum(long[one], long[other])
    there = divide(seconds, shorter, both) * np.minimum(lasts[one], lasts[other])
    before, there_all = of_ops(seconds, both), of_ops(there, both)
    room = lasts * np.maximum(1.0, divide(before, long, long > 0))
    fits = np.where(there_all > room, divide(room, there_all, there_all > 0), 1.0)
    there = there * np.minimum(fits[one], fits[other])
    there_all = of_ops(there, both)
    hidden = (own - here) * np.where(before > 0, divide(there_all, before, before > 0), ratio)
    most = after * np.maximum(_HALF, divide(overlap, own, own > 0))
    hidden = np.where(carried, np.where(before > 0, np.minimum(hidden, most), hidden), 0.0)
    elsewhere = of_ops(there, both & (roof[one] != roof[other]))
    other_roof = np.where(before > 0, divide(elsewhere, there_all, there_all > 0), 1.0)
    return Shared(here, after - hidden, hidden, divide(hidden * other_roof, after, hidden > 0))


def _pairs(profile: Profile, overlap: Array) -> tuple[Ints, Ints, Array]:
    """Which ops ran side by side in the profiled step whose starts are kept, and for how long [s].

    None where the starts are not known: an op then stays hidden by the same share of its own time.
    """
    nothing: Ints = np.zeros(0, np.int64)
    of = rows(profile)
    rows_ = np.flatnonzero(overlap > 0)
    if len(rows_) < 2 or not of.start.any():
        return nothing, nothing, np.zeros(0)
    rows_ = rows_[np.argsort(of.start[rows_], kind="stable")]
    start = of.start[rows_]
    end = start + of.own.reshape(len(profile.ops), -1)[rows_, 0]
    ones, others, times = [], [], []
    at, ahead, found = np.arange(len(rows_)), 1, 0
    while found <= _PAIRS * len(rows_):
        at = at[at + ahead < len(rows_)]
        at = at[start[at + ahead] < end[at]]
        if not len(at):
            break
        ones.append(rows_[at])
        others.append(rows_[at + ahead])
        times.append(np.minimum(end[at], end[at + ahead]) - start[at + ahead])
        found, ahead = found + len(at), ahead + 1
    if not ones:
        return nothing, nothing, np.zeros(0)
    one, other, seconds = np.concatenate(ones), np.concatenate(others), np.concatenate(times)
    some = seconds > 0
    return one[some], other[some], seconds[some] * 1e-9
