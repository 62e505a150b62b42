"""Say whether a step fits into the memory of a device, and with which batch it still would."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.vocabulary import STORAGE_KINDS, Phase, StorageKind
from roofline.memory.timeline import Timeline, in_phase, timeline
from roofline.memory.use import MemoryUse, memory_use

#: What the batch does not change.
FIXED: tuple[StorageKind, ...] = ("parameters", "gradients", "optimizer")


@dataclass(frozen=True, slots=True)
class Fit:
    """Hold what a step needs and what a device has [byte]. Unknown is None.

    fixed: the most of what no batch changes, at once. fits: None where no more is known than that it may.
    largest_batch: that fits, 0 where none does, if all but `fixed` grows as the batch does; an upper limit where `use`
    is a lower one. of_another_kind: whether a compiler assigned the memory, for another kind of device.
    """

    use: MemoryUse
    memory: float | None
    fixed: float | None
    fits: bool | None
    largest_batch: int | None
    of_another_kind: bool = False


def fit(profile: Profile, device: Device) -> Fit:
    """Compare a step with the memory of a device, where it is taken to hold what it holds here.

    A compiler assigns memory for one kind of device: nothing is known of the program that it would make for another.
    """
    use, memory, over_ops = memory_use(profile), device.memory, timeline(profile)
    if over_ops is not None and over_ops.assigned is not None and profile.device.kind != device.kind:
        return _of_another_kind(profile, memory)
    fits = None
    if use.peak is not None and memory is not None:
        fits = False if use.peak > memory else None if use.at_least else True
    if over_ops is None or not _fixed_known(profile, over_ops):
        return Fit(use, memory, None, fits, None)
    fixed = over_ops.live[[STORAGE_KINDS.index(kind) for kind in FIXED]].sum(axis=0)
    # What an optimizer makes in between is of the parameters' size.
    fixed = np.where(in_phase(profile, "optimizer"), over_ops.total, fixed)
    return Fit(use, memory, float(fixed.max()), fits, _largest_batch(profile.batch, use, memory, fixed, over_ops))


def _of_another_kind(profile: Profile, memory: float | None) -> Fit:
    """Return what is known of a step that is compiled anew there: it needs its parameters and its optimizer's state."""
    sums: dict[StorageKind, float | None] = dict.fromkeys(STORAGE_KINDS)
    sums |= {"parameters": profile.memory.parameters, "optimizer": profile.memory.optimizer}
    known = sum(size for size in sums.values() if size is not None)
    use = MemoryUse(known or None, "", True, None, sums)
    return Fit(use, memory, None, False if memory is not None and known > memory else None, None, True)


def _fixed_known(profile: Profile, over_ops: Timeline) -> bool:
    """Return whether it is known what the batch does not change.

    An XLA program does not tell gradients apart, and the state of an optimizer that nobody knows is among the inputs.
    """
    phase_of: Mapping[StorageKind, Phase] = {"gradients": "backward", "optimizer": "optimizer"}
    return "parameters" in over_ops.known and all(
        kind in over_ops.known or not in_phase(profile, phase).any() for kind, phase in phase_of.items()
    )


def _largest_batch(
    batch: int | None, use: MemoryUse, memory: float | None, fixed: np.ndarray, over_ops: Timeline
) -> int | None:
    if not batch or memory is None or use.peak is None:
        return None
    # What is there beyond what the ops are seen to use, as kernels' workspaces, grows as well.
    unseen = max(0.0, use.peak - float(over_ops.total.max()))
    growing = over_ops.total - fixed + np.where(over_ops.total > fixed, unseen, 0.0)
    if (fixed > memory).any():
        return 0
    grows = growing > 0
    if not grows.any():
        return None
    return math.floor(batch * float(((memory - fixed)[grows] / growing[grows]).min()))
