"""Find the rank that the others wait for, and what it does differently before it arrives.

Who waits least is who arrives last. Two tests tell it from chance: it arrives late more often than it would if each
order of the ranks were as likely, in each collective by itself; or what it waits in all is further below the others
than the lowest of as many normally distributed numbers would be (Dixon's Q), as where it began late, once.

How much later a rank arrives than the others in the mean is a sum that closes, over the collectives of a step:

    later = it began the steps later + it computed for longer before it + its device was idle for longer before it

and what it computes for longer is in ops that the others run as often, or in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roofline.core.arrays import Array, Bools
from roofline.ranks.matching import Matched
from roofline.ranks.work import Work

#: How often each test takes ranks that are alike for different, and how many orders or numbers it draws.
FALSE_ALARM, _DRAWN = 0.01, 5000
#: Collectives whose order is tested: more of them, spread evenly, tell no more. By choice.
_TESTED = 400

#: later start: it began later. other work: it computes for longer, most of it in ops that others do not run as often.
#: slower ops: most of it in the same ops. idle device: nothing runs on its device for longer.
Kind = Literal["later start", "other work", "slower ops", "idle device"]


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that waits least, per step [s]. stands_out: whether that is more than chance.

    of: at how many collectives it took part, and last: at how many of them it arrived last. waiting: its own; others:
    the least and the most that another rank waits. later: how much later than the others in the mean it arrives, over
    all collectives of a step; start, computing, idle: of that. same_ops, other_ops: what its ops take longer than
    those of the others in the mean, in ops that all ranks run as often, and in others.
    """

    rank: int
    stands_out: bool
    of: int
    last: int
    waiting: float
    others: tuple[float, float]
    later: float
    start: float
    computing: float
    idle: float
    same_ops: float
    other_ops: float

    @property
    def kind(self) -> Kind:
        """Name the largest part of what makes it late."""
        if self.start >= max(self.computing, self.idle):
            return "later start"
        if self.idle >= self.computing:
            return "idle device"
        return "slower ops" if self.same_ops >= self.other_ops else "other work"


def find_straggler(numbers: Sequence[int], matched: Matched, work: Work) -> Straggler:
    """Find the rank that waits least of those that take part in most collectives."""
    steps = len(set(matched.steps))
    waiting, parts = matched.waiting.sum(1) / steps, matched.took_part.sum(1)
    among = np.flatnonzero(parts == parts.max())
    row = int(among[waiting[among].argmin()])
    others = np.delete(waiting[parts > 0], np.flatnonzero(np.flatnonzero(parts > 0) == row))
    took = matched.took_part[row]
    at = matched.took_part[:, took]
    last = int((np.where(at, matched.duration[:, took], np.inf).argmin(0) == row).sum())
    begins = matched.start - matched.before
    start, computing, idle = (
        float(_above_others(values[:, took], at, row).sum()) / steps
        for values in (begins, matched.computing, matched.before - matched.computing)
    )
    same, other = (float(of[row] - np.delete(of, row).mean()) for of in (work.alike, work.other))
    return Straggler(
        rank=numbers[row],
        stands_out=_is_late(matched.duration[:, took], at, row) or is_lowest(float(waiting[row]), others),
        of=int(took.sum()),
        last=last,
        waiting=float(waiting[row]),
        others=(float(others.min(initial=np.inf)), float(others.max(initial=0.0))),
        later=start + computing + idle,
        start=start,
        computing=computing,
        idle=idle,
        same_ops=same,
        other_ops=other,
    )


def _above_others(values: Array, took_part: Bools, row: int) -> Array:
    """Return by how much a rank's value is above the mean of the others that took part, per collective."""
    others = took_part.copy()
    others[row] = False
    return np.asarray(values[row] - np.where(others, values, 0.0).sum(0) / others.sum(0))


def _is_late(duration: Array, took_part: Bools, row: int) -> bool:
    """Test whether a rank arrives late more often than the latest of ranks that arrive in random order would."""
    chosen = np.unique(np.linspace(0, duration.shape[1] - 1, _TESTED).astype(np.int64))
    duration, took_part = duration[:, chosen], took_part[:, chosen]
    places = _places(np.where(took_part, duration, np.inf))
    size = np.maximum(took_part.sum(0) - 1, 1)
    relative = np.where(took_part, places / size, np.nan)
    seen = float(np.nanmean(relative[row]))
    rng, as_late = np.random.default_rng(0), 0
    for _ in range(_DRAWN):
        drawn = _places(np.where(took_part, rng.random(duration.shape), np.inf))
        means = np.where(took_part, drawn / size, 0.0).sum(1) / np.maximum(took_part.sum(1), 1)
        as_late += float(means[took_part.any(1)].min()) <= seen
    return (as_late + 1) / (_DRAWN + 1) < FALSE_ALARM


def is_lowest(waiting: float, others: Array) -> bool:
    """Test whether a rank waits less than the lowest of normally distributed waits would, by Dixon's Q."""
    if len(others) < 2 or others.max() <= waiting:
        return False
    seen = (others.min() - waiting) / (others.max() - waiting)
    drawn = np.sort(np.random.default_rng(0).normal(size=(_DRAWN, 1 + len(others))), axis=1)
    as_low = int(((drawn[:, 1] - drawn[:, 0]) / (drawn[:, -1] - drawn[:, 0]) >= seen).sum())
    return (as_low + 1) / (_DRAWN + 1) < FALSE_ALARM


def _places(values: Array) -> Array:
    """Return how many values of each column are below each one; equal ones share their places."""
    order = np.sort(values, axis=0)
    places = np.zeros(values.shape)
    for column in range(values.shape[1]):
        low, high = (np.searchsorted(order[:, column], values[:, column], side) for side in ("left", "right"))
        places[:, column] = (low + high - 1) / 2
    return places
