"""Who has an instant that a collective or a copy from or to the host shares with computation: the computation.

A profile divides an instant in which several ops run equally between them. What an op attains would then depend on what
runs beside it, as a collective that is exposed in one run and hidden in the other. A collective adds to a step what no
computation hides, so that what differs between two runs is how much of it is exposed.

Who ran beside whom is read off the representative step, in which an op runs from its start on, without a break: that
part of what ops share in the mean of all steps goes to computation; of a trace that says how much of its collectives is
exposed, that. The total of a run stays the same.
"""

from __future__ import annotations

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.core.arrays import Array, Bools
from roofline.core.rows import Ints
from roofline.core.rows import rows as columns
from roofline.core.vocabulary import OpClass
from roofline.units import NANOSECOND

#: What moves data between devices, or between host and device, and can be hidden by computation.
_MOVING: frozenset[OpClass] = frozenset(("communication", "transfer"))


def overlaps(analysis: Analysis) -> Array:
    """Return own time less share of each op [s], unscaled, where computation goes before collectives and copies."""
    profile, of = analysis.profile, columns(analysis.profile)
    overlap = of.overlap.astype(np.float64)
    overlapped = np.flatnonzero(overlap > 0)
    classes = [analysis.op_class(profile.ops[row]) for row in overlapped.tolist()]
    moving = np.asarray([name in _MOVING for name in classes], bool)
    if moving.all() or not moving.any():
        return overlap * NANOSECOND
    own_time, overlap_time = of.own.reshape(len(profile.ops), -1)[overlapped], overlap[overlapped]
    exchanged, shared = _exchanged(of.start[overlapped], own_time[:, 0], moving)
    # Of what shares nothing in that step and does in others, as much as of all of its kind.
    of_all = [float(exchanged[mask].sum()) / max(float(shared[mask].sum()), 1.0) for mask in (~moving, moving)]
    part = np.divide(exchanged, shared, out=np.asarray(of_all)[moving.astype(np.int64)], where=shared >= 1)
    exchanged = part * overlap_time
    collective = np.asarray([name == "communication" for name in classes], bool)
    exchanged[collective] *= _as_recorded(analysis, overlap, float(exchanged[collective].sum()))
    # No computation gets more than it shared, and no collective loses more than it had: ops may have breaks.
    exchanged = np.minimum(exchanged, np.where(moving, own_time.mean(axis=1) - overlap_time, overlap_time))
    lost, got = (float(exchanged[mask].sum()) for mask in (moving, ~moving))
    room = np.where(moving, 0.0, overlap_time - exchanged)
    if lost > got and room.any():
        exchanged += room * min(1.0, (lost - got) / float(room.sum()))
        got = float(exchanged[~moving].sum())
    if lost and got:
        overlap[overlapped] += np.where(moving, exchanged / lost, -exchanged / got) * min(lost, got)
    return overlap * NANOSECOND


def _as_recorded(analysis: Analysis, overlap: Array, lost: float) -> float:
    """Return how many times `lost` [ns] collectives give to computation, by what a trace says of all of its steps.

    overlap: own time less equal share of each op [ns].
    """
    imported, of = analysis.profile.imported, analysis.table.columns
    if imported is None or imported.exposed is None or lost <= 0:
        return 1.0
    classes = [signature.op_class for signature in analysis.profile.signatures]
    collective = np.asarray([name == "communication" for name in classes], bool)[of.signature]
    shares = float(of.own[collective].sum()) / NANOSECOND - float(overlap[collective].sum())
    return max(0.0, shares - imported.exposed / NANOSECOND) / lost


def _exchanged(start: Ints, own_time: Ints, moving: Bools) -> tuple[Array, Array]:
    """Return what each computation of a step gets, and what moves data gives, where computation goes before it [ns].

    Then how much less than its own time each has where instants are divided equally [ns].
    """
    times, at = np.unique(np.concatenate((start, start + own_time)), return_inverse=True)
    opened, closed = at[: len(start)], at[len(start) :]
    computing, movers = (
        np.cumsum(np.bincount(opened[of], minlength=len(times)) - np.bincount(closed[of], minlength=len(times)))[:-1]
        for of in (~moving, moving)
    )
    equally = np.diff(times) / np.maximum(computing + movers, 1)

    def of_each(times: Array) -> Array:
        """Sum what an op gets of each instant over those in which it runs."""
        sums = np.append(0.0, np.cumsum(times))
        return np.asarray(sums[closed] - sums[opened])

    gets, gives = np.diff(times) / np.maximum(computing, 1) - equally, np.where(computing > 0, equally, 0.0)
    return np.where(moving, of_each(gives), of_each(gets)), own_time - of_each(equally)
