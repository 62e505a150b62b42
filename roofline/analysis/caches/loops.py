"""Ops that a loop of the step runs several times: the order in which a cache sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.core.rows import Ints, rows
from roofline.core.schema import Profile

#: Loops in loops up to this depth are taken apart; further in, an op stands for all of its executions. By choice: each
#: level doubles what has to be walked through.
_DEEPEST = 4


def times(profile: Profile) -> Ints:
    """How often the step runs each op. Where that was not recorded, a CPU runs an op as often as it launches it."""
    of = rows(profile)
    if profile.device.kind == "cpu":
        return np.where(of.times > 1, of.times, np.maximum(1, of.launches))
    return np.maximum(1, of.times)


def unrolled(often: Ints) -> tuple[Ints, NDArray[np.float64]]:
    """The ops in the order in which they run, the body of each loop twice, and for how many executions each stands.

    Neighbours that run several times are one loop. What its body finds in a cache in its first turn depends on what was
    before it; in all further turns it finds what the turn before left, so that the second one stands for all of them.
    """
    order: list[int] = []
    weight: list[float] = []
    counts = often.tolist()

    def walk(begin: int, end: int, around: int, stands_for: float, depth: int) -> None:
        """around: turns of the loops around these ops; stands_for: of these turns."""
        at = begin
        while at < end:
            behind = at + 1
            if counts[at] < 2 * around or depth == _DEEPEST:
                order.append(at)
                weight.append(stands_for * counts[at] / around)
                at = behind
                continue
            while behind < end and counts[behind] >= 2 * around:
                behind += 1
            turns = min(counts[at:behind]) // around
            walk(at, behind, around * turns, stands_for, depth + 1)
            walk(at, behind, around * turns, stands_for * (turns - 1), depth + 1)
            at = behind

    walk(0, len(counts), 1, 1.0, 0)
    return np.asarray(order, np.int64), np.asarray(weight, np.float64)
