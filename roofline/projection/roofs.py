"""The roofs above the ops of a step on a device: how long their work takes at its ceilings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.traffic import cold_traffic
from roofline.analysis.floors import Terms
from roofline.analysis.op_table import op_terms
from roofline.core.device import Device
from roofline.core.rows import buffers_known
from roofline.core.schema import Profile

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Roofs:
    """The terms of all ops on one side [s]: compute, memory, launch, shape (3, ops); nothing known is 0.

    found: the different works of the step; of: which of them each op is.
    """

    found: tuple[Terms, ...]
    of: NDArray[np.int64]
    terms: Array

    @property
    def floor(self) -> Array:
        """The least time of each op [s]."""
        value: Array = self.terms.max(axis=0, initial=0.0)
        return value

    @property
    def work(self) -> Array:
        """The time of each op's work at the ceilings [s], without what launching takes."""
        value: Array = self.terms[:2].max(axis=0, initial=0.0)
        return value

    @property
    def binding(self) -> NDArray[np.int64]:
        """Which row of `terms` the work of each op is: 0 compute, 1 memory."""
        which: NDArray[np.int64] = self.terms[:2].argmax(axis=0)
        return which

    @property
    def ceilings(self) -> NDArray[np.str_]:
        """The name of the ceiling that binds the work of each op."""
        names = np.asarray([(row.compute_ceiling, row.memory_ceiling) for row in self.found], np.str_).reshape(-1, 2)
        return names[self.of, self.binding]


def roofs(profile: Profile, device: Device) -> Roofs:
    """The roofs of a step on a device; where it is not known what its caches held, everything came from main memory."""
    found, work = op_terms(profile, device, cold_traffic(profile, device))
    memory = [row.memory if row.memory_high is None else row.memory_high for row in found]
    values = [[row.compute or 0.0, most or 0.0, row.launch or 0.0] for row, most in zip(found, memory, strict=True)]
    return Roofs(tuple(found), work, np.asarray(values, np.float64).reshape(-1, 3)[work].T)


def served(profile: Profile, device: Device) -> tuple[NDArray[np.bool_], Array]:
    """Which ops a cache of the device may have served, in part or whole, and the work of each if it did [s].

    None of a step whose buffers are known: what of its inputs the cache holds is no question there.
    """
    found, work = op_terms(profile, device, cold_traffic(profile, device))
    unknown = not buffers_known(profile)
    less = [unknown and row.memory_high is not None and (row.memory or 0.0) < row.memory_high for row in found]
    least = [max(row.compute or 0.0, row.memory or 0.0) for row in found]
    return np.asarray(less, bool)[work], np.asarray(least, np.float64)[work]


def divide(a: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    """a / b where it can be said, else 0."""
    out: Array = np.divide(a, b, out=np.zeros_like(a), where=where & (b > 0))
    return out
