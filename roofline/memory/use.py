"""Describe the memory of a step in a few figures: its peak, where that is reached, and what for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roofline.core.schema import Profile
from roofline.core.vocabulary import STORAGE_KINDS, StorageKind
from roofline.memory.timeline import timeline

#: What the sources of a timeline are, for readers.
SOURCES = {
    "allocator": "allocations of one step",
    "buffer assignment": "XLA's buffer assignment",
    "last use": "each buffer until its last use",
}

#: What each kind of storage is called.
WORDS: Mapping[StorageKind, str] = {
    **{kind: kind for kind in STORAGE_KINDS},
    "optimizer": "optimizer state",
}


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Describe the peak of a step's memory. Unknown is None.

    peak: [byte], measured where the device's allocator told it; source: who told. at_least: whether it may be higher.
    op: number of the op during which most is in use; parts: what is in use then, by what it is for [byte].
    """

    peak: float | None
    source: str
    at_least: bool
    op: int | None
    parts: Mapping[StorageKind, float | None]


def memory_use(profile: Profile) -> MemoryUse:
    """Describe the memory of a step. The memory of the whole process is never taken for it."""
    measured, over_ops = profile.memory, timeline(profile)
    if over_ops is None:
        parts: dict[StorageKind, float | None] = dict.fromkeys(STORAGE_KINDS)
        parts |= {"parameters": measured.parameters, "optimizer": measured.optimizer, "gradients": measured.gradients}
        return MemoryUse(measured.peak, measured.source, False, None, parts)
    op = over_ops.highest
    parts = over_ops.parts(op)
    if measured.peak is not None:
        return MemoryUse(measured.peak, measured.source, False, op, parts)
    return MemoryUse(over_ops.peak, SOURCES[over_ops.source], over_ops.at_least, op, parts)
