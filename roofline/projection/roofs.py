"""Compute the roofs of a step's ops on a device: the time of their work at its ceilings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.traffic import cold_traffic
from roofline.analysis.floors import Terms
from roofline.analysis.op_table import op_terms
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.rows import buffers_known
from roofline.core.schema import Profile


@dataclass(frozen=True, slots=True)
class Roofs:
    """Hold the terms of all ops on a device [s]: compute, memory, launch, shape (3, ops); an unknown term is 0.

    works: the distinct works of the step; of: the index of each op's work.
    """

    works: tuple[Terms, ...]
    of: NDArray[np.int64]
    terms: Array

    @property
    def floor(self) -> Array:
        """The least time of each op [s]; shape (ops,)."""
        value: Array = self.terms.max(axis=0, initial=0.0)
        return value

    @property
    def work(self) -> Array:
        """The time of each op's work at the ceilings [s], without launching; shape (ops,)."""
        value: Array = self.terms[:2].max(axis=0, initial=0.0)
        return value

    @property
    def binding(self) -> NDArray[np.int64]:
        """The row of `terms` that binds the work of each op: 0 compute, 1 memory."""
        rows: NDArray[np.int64] = self.terms[:2].argmax(axis=0)
        return rows

    @property
    def ceilings(self) -> NDArray[np.str_]:
        """The name of the ceiling that binds the work of each op."""
        names = np.asarray([(row.compute_ceiling, row.memory_ceiling) for row in self.works], np.str_).reshape(-1, 2)
        return names[self.of, self.binding]


def roofs(profile: Profile, device: Device) -> Roofs:
    """Compute the roofs of a step on a device; where the contents of its caches are unknown, all traffic is DRAM's."""
    works, work = op_terms(profile, device, cold_traffic(profile, device))
    memory = [row.memory if row.memory_high is None else row.memory_high for row in works]
    values = [
        [row.compute or 0.0, memory_seconds or 0.0, row.launch or 0.0]
        for row, memory_seconds in zip(works, memory, strict=True)
    ]
    return Roofs(tuple(works), work, np.asarray(values, np.float64).reshape(-1, 3)[work].T)


def cache_served(profile: Profile, device: Device) -> tuple[NDArray[np.bool_], Array]:
    """Mark the ops that a cache may have served in part or whole, and compute the work of each if it did [s].

    Marks no op of a step whose buffers are known: the part of its inputs that the cache holds is then known.
    """
    works, work = op_terms(profile, device, cold_traffic(profile, device))
    buffers_unknown = not buffers_known(profile)
    servable = [
        buffers_unknown and row.memory_high is not None and (row.memory or 0.0) < row.memory_high for row in works
    ]
    least = [max(row.compute or 0.0, row.memory or 0.0) for row in works]
    return np.asarray(servable, bool)[work], np.asarray(least, np.float64)[work]


def divide(a: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    """Divide a by b where `where` holds and b is above 0, else 0."""
    out: Array = np.divide(a, b, out=np.zeros_like(a), where=where & (b > 0))
    return out
