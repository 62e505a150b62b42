"""Tell what dispatching an op takes the host: calls of the framework, and Python around them as it was calibrated.

What an op takes a host around itself was measured in the process of the run, with ops that do next to nothing. Before
each op Python is its dispatch up to what such an op takes inside layers, with what an op takes alone for each view
before it: views have no layer each. Right after an op that moves more than the cache of a core holds, it is what the op
takes with nothing in the caches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline import units
from roofline.core.device import Device
from roofline.core.executor import COMPILED_CODE, OP_ALONE, OP_COLD, OP_IN_LAYERS, READS
from roofline.core.schema import Profile

#: The largest cache that a core has to itself.
_OF_A_CORE = "l2"


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The ops that the host of a step gets to run, and calls of the framework that run none (views, results read).

    Calls are recorded before ops, and results read for the whole step. As many of the calls as can be are taken for
    results read, so that `views` is the least number of views.
    """

    ops: int
    views: int
    reads: int

    @property
    def all(self) -> int:
        """Count ops, views and results read."""
        return self.ops + self.views + self.reads

    @property
    def words(self) -> str:
        """Say "300 ops, 150 views and 2 results read"."""
        kinds = ((self.ops, "op"), (self.views, "view"))
        counts = [f"{units.count(number)} {noun}{'' if number == 1 else 's'}" for number, noun in kinds if number]
        counts += [f"{units.count(self.reads)} result{'' if self.reads == 1 else 's'} read"] if self.reads else []
        return " and ".join(filter(None, (", ".join(counts[:-1]), counts[-1])))


def dispatched(profile: Profile) -> Dispatched | None:
    """Count what the host of a step gets to run, op by op; None where that was not recorded.

    Nor of a step with compiled code whose kernels nobody saw: they run where the host seems to dispatch.
    """
    if COMPILED_CODE in profile.flags:
        return None
    if not profile.ops or any(op.host_calls is None for op in profile.ops) or OP_ALONE not in profile.conditions:
        return None
    calls, reads = calls_and_reads(profile)
    return Dispatched(sum(max(1, op.launches) for op in profile.ops), max(0, calls - reads), reads)


def calls_and_reads(profile: Profile) -> tuple[int, int]:
    """Count calls of the framework before its ops that run none, and results read, more of them after the last op."""
    return sum(op.host_calls or 0 for op in profile.ops), round(profile.conditions.get(READS, 0.0))


def beyond_dispatch(profile: Profile, device: Device) -> NDArray[np.float64] | None:
    """Return how long before each op the host was in Python beyond what dispatching it takes [s], shape (ops,).

    None where what an op takes this host was not calibrated, or its calls were not recorded.
    """
    op_alone, in_layers = (profile.conditions.get(name) for name in (OP_ALONE, OP_IN_LAYERS))
    if dispatched(profile) is None or op_alone is None or in_layers is None:
        return None
    return python_beyond(profile, device, op_alone, in_layers)


def python_beyond(profile: Profile, device: Device, op_alone: float, in_layers: float) -> NDArray[np.float64]:
    """Return how long before each op the host did what is no dispatch of it [s]; shape (ops,)."""
    columns = [(op.python_ns or 0, max(1, op.launches), op.host_calls or 0) for op in profile.ops]
    python, ops, views = np.asarray(columns, np.float64).T
    cold = profile.conditions.get(OP_COLD, in_layers)
    usual = np.where(_after_large(profile, device), cold, in_layers) * ops + op_alone * views
    beyond_usual: NDArray[np.float64] = np.maximum(0.0, python * 1e-9 - usual)
    return beyond_usual


def _after_large(profile: Profile, device: Device) -> NDArray[np.bool_]:
    """Return which ops follow one that moves more than a core's cache holds; the first follows another step.

    Where the work of an op or the size of the cache is not known, it may have emptied it.
    """
    size = next((cache.size for cache in device.caches if cache.level == _OF_A_CORE), None) or 0.0
    costs = [signature.cost for signature in profile.signatures]
    moved = [
        np.inf if c.bytes_read is None or c.bytes_written is None else c.bytes_read + c.bytes_written for c in costs
    ]
    after = np.ones(len(profile.ops), np.bool_)
    after[1:] = (np.asarray(moved) > size)[[op.signature for op in profile.ops[:-1]]]
    return after
