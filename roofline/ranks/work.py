"""Compare the ops of ranks: the time of those that all run as often, with the same arguments, and of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roofline.core.arrays import Array
from roofline.core.rows import Ints
from roofline.core.rows import rows as columns
from roofline.core.schema import Profile
from roofline.ranks.chance import is_lowest
from roofline.units import NANOSECOND

#: An op by its name, arguments and type.
_Op = tuple[str, str, str | None]
#: Of the ops of an outlier, by time, those whose ratios are told: all but a twentieth at either end.
_ENDS = (0.05, 0.95)


class Work(NamedTuple):
    """The own time of ops per rank and step, without collectives [s].

    alike: of the ops that all ranks run as often, shape [ranks, ops]. different: of all others, shape [ranks].
    """

    alike: Array
    different: Array


@dataclass(frozen=True, slots=True)
class Outlier:
    """A rank whose ops take longer than chance would make those of one of the ranks (`chance.is_lowest`).

    is_alike: whether in ops that all ranks run as often, or in others. seconds: per step, and mean: of the other ranks
    [s]. ratios: in how many times the mean of the other ranks nine tenths of the time of its ops lie; None of others,
    and where those of the other ranks take no time.
    """

    rank: int
    is_alike: bool
    seconds: float
    mean: float
    ratios: tuple[float, float] | None = None


def own_times(profile: Profile) -> Array:
    """Return the mean own time of each op per step [s]."""
    of = columns(profile)
    return of.own.reshape(len(profile.ops), -1).mean(1) * NANOSECOND if len(profile.ops) else np.zeros(0)


def compare_work(profiles: Sequence[Profile]) -> Work:
    """Take apart the times of ops that each rank executes as often as all others, and sum up the rest."""
    tables = [_times(profile) for profile in profiles]
    alike = [op for op in tables[0] if len({table.get(op, (0.0, 0.0))[0] for table in tables}) == 1]
    times = np.asarray([[table[op][1] for op in alike] for table in tables], np.float64).reshape(len(tables), -1)
    shared = frozenset(alike)
    # Summed up, not what all take less these: that would leave the rounding of both, which is no time of an op.
    others = [[seconds for op, (_, seconds) in table.items() if op not in shared] for table in tables]
    return Work(times, np.asarray([math.fsum(seconds) for seconds in others]))


def find_outliers(numbers: Sequence[int], work: Work) -> list[Outlier]:
    """Return the rank whose ops take longest, of both kinds, where that is more than chance."""
    outliers = []
    for is_alike, times in ((True, work.alike.sum(1)), (False, work.different)):
        row = int(times.argmax())
        mean = np.delete(times, row)
        if is_lowest(-float(times[row]), -mean):
            ratios = _ratios(work.alike, row) if is_alike else None
            outliers.append(Outlier(numbers[row], is_alike, float(times[row]), float(mean.mean()), ratios))
    return outliers


def _ratios(alike: Array, row: int) -> tuple[float, float] | None:
    """Return between which ratios to the other ranks' mean nine tenths of the time of a rank's ops lie.

    None where that mean is 0 of all ops.
    """
    mean = np.delete(alike, row, axis=0).mean(0)
    timed = np.flatnonzero(mean > 0)
    if not len(timed):
        return None
    ratio, seconds = alike[row, timed] / mean[timed], mean[timed]
    order: Ints = np.argsort(ratio)
    reached = np.cumsum(seconds[order]) / seconds.sum()
    low, high = (float(ratio[order][np.searchsorted(reached, end)]) for end in _ENDS)
    return low, high


def _times(profile: Profile) -> dict[_Op, tuple[float, float]]:
    """Return how often each op runs, and its own time per step [s], without collectives."""
    of = columns(profile)
    counts, times = (np.bincount(of.signature, by, len(profile.signatures)) for by in (of.times, own_times(profile)))
    table: dict[_Op, tuple[float, float]] = {}
    for signature, count, seconds in zip(profile.signatures, counts.tolist(), times.tolist(), strict=True):
        if count and signature.op_class != "communication":  # a table may hold signatures of no op
            op = (signature.name, signature.shapes, signature.dtype)
            before = table.get(op, (0.0, 0.0))
            table[op] = (before[0] + count, before[1] + seconds)
    return table
