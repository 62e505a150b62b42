"""Ops that a loop of the step runs several times: the order in which a cache sees them."""

from __future__ import annotations

import numpy as np

from roofline.core.arrays import Array
from roofline.core.rows import Ints, rows
from roofline.core.schema import Profile

#: Loops in loops up to this depth are taken apart; further in, an op stands for all of its executions. By choice: each
#: level doubles what has to be walked through.
_DEEPEST = 4


def times(profile: Profile) -> Ints:
    """Return how often the step runs each op; where that was not recorded, on a CPU its launches."""
    of = rows(profile)
    if profile.device.kind == "cpu":
        return np.where(of.times > 1, of.times, np.maximum(1, of.launches))
    return np.maximum(1, of.times)


def unroll_loops(often: Ints) -> tuple[Ints, Array, Array]:
    """Return the ops as they run, the body of each loop twice, and for how many executions each stands.

    Neighbours that run several times are one loop. What its body finds in a cache in its first turn depends on what was
    before it; in all further turns it finds what the turn before left, so that the second one stands for all of them.
    Of what it writes the first turn stands for all but the last, which is followed by what is behind the loop.

    Returns the rows of the ops, and the executions that each stands for as one that reads and as one that writes.
    """
    if (often == 1).all():
        return np.arange(len(often)), np.ones(len(often)), np.ones(len(often))
    order: list[int] = []
    weights: list[tuple[float, float]] = []
    counts = often.tolist()

    def walk(begin: int, end: int, around: int, reads: float, writes: float, depth: int) -> None:
        """Unroll ops. around: turns of the loops around them; reads, writes: how many of them this walk stands for."""
        at = begin
        while at < end:
            after = at + 1
            if counts[at] < 2 * around or depth == _DEEPEST:
                order.append(at)
                weights.append((reads * counts[at] / around, writes * counts[at] / around))
                at = after
                continue
            while after < end and counts[after] >= 2 * around:
                after += 1
            turns = min(counts[at:after]) // around
            walk(at, after, around * turns, reads, writes * (turns - 1), depth + 1)
            walk(at, after, around * turns, reads * (turns - 1), writes, depth + 1)
            at = after

    walk(0, len(counts), 1, 1.0, 1.0, 0)
    of_reads, of_writes = np.asarray(weights, np.float64).reshape(-1, 2).T
    return np.asarray(order, np.int64), of_reads, of_writes
