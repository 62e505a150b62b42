"""Find the rank that the others wait for, and what it does differently before it arrives.

Who waits least is who arrives last. Two tests tell that from chance (`chance`): it arrives late more often, or it waits
further below the others, as where it began late, once.

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
from roofline.ranks.chance import is_late, is_lowest
from roofline.ranks.matching import Matched
from roofline.ranks.work import Work

#: later start: it began later. other work: it computes for longer, most of it in ops that others do not run as often.
#: slower ops: most of it in the same ops. idle device: nothing runs on its device for longer.
Kind = Literal["later start", "other work", "slower ops", "idle device"]


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that waits least, per step [s]. stands_out: whether that is more than chance.

    collectives: how many it took part in, and last: at how many of them it arrived last. waiting: its own; longer: the
    least and the most that another rank waits. later: how much later than the other ranks in the mean it arrives, over
    all collectives of a step; start, computing, idle: of that. alike_ops, different_ops: what its ops take longer than
    those of the other ranks in the mean, in ops that all ranks run as often, and in others.
    """

    rank: int
    stands_out: bool
    collectives: int
    last: int
    waiting: float
    longer: tuple[float, float]
    later: float
    start: float
    computing: float
    idle: float
    alike_ops: float
    different_ops: float

    @property
    def kind(self) -> Kind:
        """Name the largest part of what makes it late."""
        if self.start >= max(self.computing, self.idle):
            return "later start"
        if self.idle >= self.computing:
            return "idle device"
        return "slower ops" if self.alike_ops >= self.different_ops else "other work"


def find_straggler(numbers: Sequence[int], matched: Matched, work: Work) -> Straggler:
    """Find the rank that waits least of those that take part in most collectives."""
    steps = len(set(matched.steps))
    waiting, parts = matched.waiting.sum(1) / steps, matched.took_part.sum(1)
    eligible = np.flatnonzero(parts == parts.max())
    row = int(eligible[waiting[eligible].argmin()])
    longer = waiting[(parts > 0) & (np.arange(len(parts)) != row)]
    mine = matched.took_part[row]
    took_part, begins = matched.took_part[:, mine], matched.start - matched.before
    start, computing, idle = (
        float(_above_mean(values[:, mine], took_part, row).sum()) / steps
        for values in (begins, matched.computing, matched.before - matched.computing)
    )
    alike, different = (
        float(times[row] - np.delete(times, row).mean()) for times in (work.alike.sum(1), work.different)
    )
    return Straggler(
        rank=numbers[row],
        stands_out=is_late(matched.duration[:, mine], took_part, row) or is_lowest(float(waiting[row]), longer),
        collectives=int(mine.sum()),
        last=int((matched.last[mine] == row).sum()),
        waiting=float(waiting[row]),
        longer=(float(longer.min()), float(longer.max())),
        later=start + computing + idle,
        start=start,
        computing=computing,
        idle=idle,
        alike_ops=alike,
        different_ops=different,
    )


def _above_mean(values: Array, took_part: Bools, row: int) -> Array:
    """Return by how much a rank's value is above the mean of the other ranks that took part, per collective."""
    further = took_part.copy()
    further[row] = False
    return np.asarray(values[row] - np.where(further, values, 0.0).sum(0) / further.sum(0))
