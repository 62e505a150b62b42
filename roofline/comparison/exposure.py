"""Who has an instant that a collective or a copy from or to the host shares with computation: the computation.

A profile divides an instant in which several ops run equally between them. What an op attains would then depend on what
runs beside it: products beside a collective that is exposed in one run and hidden in the other would look faster there.
What a computation takes is its own time, and a collective adds to a step what no computation hides. So an instant of
both is all of the computation's, and what differs between two runs is how much of a collective is exposed.

Who ran beside whom is read off the representative step, in which an op is taken to run from its start on, without a
break. The total of a run stays the same: what a computation gets is taken from collectives and copies.
"""

from __future__ import annotations

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.comparison.arrays import Array, Bools
from roofline.core.rows import Ints
from roofline.core.rows import rows as columns
from roofline.core.vocabulary import OpClass

#: What moves data between devices, or between host and device, and can be hidden by computation.
MOVING: frozenset[OpClass] = frozenset(("communication", "transfer"))


def overlaps(analysis: Analysis) -> Array:
    """Own time less share of each op [s], unscaled, where computation goes before collectives and copies."""
    profile, of = analysis.profile, columns(analysis.profile)
    overlap = of.overlap.astype(np.float64)
    beside = np.flatnonzero(overlap > 0)
    moving = np.asarray([analysis.op_class(profile.ops[row]) in MOVING for row in beside.tolist()], bool)
    if moving.all() or not moving.any():
        return overlap * 1e-9
    own = of.own.reshape(len(profile.ops), -1)[beside]
    gained = _gained(of.start[beside], own[:, 0], moving)
    # No computation gets more than it shared, and no collective loses more than it had: ops may have breaks.
    had = own.mean(axis=1) - overlap[beside]
    gained = np.where(moving, -np.minimum(-gained, had), np.minimum(gained, overlap[beside]))
    sums = [abs(float(gained[which].sum())) for which in (moving, ~moving)]
    if min(sums) > 0:
        overlap[beside] -= gained * min(sums) / np.where(moving, *sums)
    return overlap * 1e-9


def _gained(start: Ints, own: Ints, moving: Bools) -> Array:
    """What each op of a step gets more of its instants where computation goes before what moves data [ns]."""
    times, at = np.unique(np.concatenate((start, start + own)), return_inverse=True)
    opened, closed = at[: len(start)], at[len(start) :]
    computing, movers = (
        np.cumsum(np.bincount(opened[of], minlength=len(times)) - np.bincount(closed[of], minlength=len(times)))[:-1]
        for of in (~moving, moving)
    )
    lasting = np.diff(times)
    equally = lasting / np.maximum(computing + movers, 1)
    # Between two times, what each op of a kind that runs there gets.
    more = [
        np.append(0.0, np.cumsum(each - equally))
        for each in (lasting / np.maximum(computing, 1), np.where(computing, 0.0, lasting / np.maximum(movers, 1)))
    ]
    found: Array = np.where(moving, more[1][closed] - more[1][opened], more[0][closed] - more[0][opened])
    return found
