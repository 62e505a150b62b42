"""The roofs above the ops of a step on two devices, and by how much they let the time of each op change.

A ratio is an op's time there over its time here, by the model of `whatif`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.cache_traffic import cold_traffic
from roofline.analysis.floors import ATTAINED, Terms
from roofline.analysis.op_table import op_terms
from roofline.core.device import Device
from roofline.core.schema import Profile

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Roofs:
    """The terms of all ops on one side [s]: compute, memory, launch, shape (3, ops); nothing known is 0."""

    rows: tuple[Terms, ...]
    terms: Array

    @property
    def floor(self) -> Array:
        """The least time of each op [s]."""
        value: Array = self.terms.max(axis=0, initial=0.0)
        return value

    @property
    def binding(self) -> NDArray[np.int64]:
        """The row of `terms` that each floor is."""
        which: NDArray[np.int64] = self.terms.argmax(axis=0)
        return which

    def at(self, which: NDArray[np.int64]) -> Array:
        """The term of each op under one roof."""
        value: Array = self.terms[which, np.arange(self.terms.shape[1])]
        return value

    @property
    def ceilings(self) -> list[str]:
        """The name of the ceiling that binds each op."""
        return [
            (row.compute_ceiling, row.memory_ceiling, row.launch_ceiling)[which]
            for row, which in zip(self.rows, self.binding.tolist(), strict=True)
        ]


def roofs(profile: Profile, device: Device, upper: bool) -> Roofs:
    """The roofs of a step on a device.

    upper: where it is not known what the caches held, everything came from main memory; else as little as can be.
    """
    found, work = op_terms(profile, device, cold_traffic(profile, device))
    values = [
        [row.compute or 0.0, (row.memory_high if upper else row.memory) or 0.0, row.launch or 0.0] for row in found
    ]
    return Roofs(tuple(map(found.__getitem__, work.tolist())), np.asarray(values, np.float64).reshape(-1, 3)[work].T)


def divide(a: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    """a / b where it can be said, else 0."""
    out: Array = np.divide(a, b, out=np.zeros_like(a), where=where & (b > 0))
    return out


def least_ratio(here: Analysis, ours: Roofs, theirs: Roofs, ratio: Array) -> Array:
    """The least ratio: every roof but the one that binds here perfectly attained, and no more than `ratio`."""
    own, which = here.table.own, ours.binding
    perfect = np.divide(theirs.floor, own, out=ratio.copy(), where=own > 0)
    same = divide(theirs.at(which), ours.at(which), np.ones(len(own), bool))
    value: Array = np.where(ours.floor > 0, np.minimum(np.maximum(perfect, same), ratio), ratio)
    return value


def loss_unchanged(here: Analysis, ours: Roofs, theirs: Roofs, ratio: Array) -> Array:
    """The ratio if all that an op takes above its floor stays: where no launch floor tells a launch from a loss."""
    own = here.table.own
    launch_known = np.asarray([row.launch is not None for row in ours.rows], bool)
    doubtful = ~launch_known & (ratio > 0) & (ours.floor < ATTAINED * own)
    value: Array = np.divide(theirs.floor + own - ours.floor, own, out=ratio.copy(), where=doubtful)
    return value


def most_ratio(ours: Roofs, theirs: Roofs, ratio: Array) -> Array:
    """The greatest ratio: the roof that binds there is attained only as far as it was here."""
    which = theirs.binding
    value: Array = np.maximum(divide(theirs.at(which), ours.at(which), np.ones(len(ratio), bool)), ratio)
    return np.where(ratio > 0, value, 0.0)
