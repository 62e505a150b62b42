"""Which bytes of an op have to come from main memory, from the history of its buffers.

An input is warm if the distinct bytes touched since its last use, its own included, fit the usable last-level cache.
That is exactly what a least-recently-used list of buffers, cut at the cache's size, still holds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from roofline.core.device import Device
from roofline.core.schema import Profile

Accesses = list[tuple[tuple[int, float], ...]]


def cold_bytes(
    reads: Sequence[Sequence[tuple[int, float]]],
    writes: Sequence[Sequence[tuple[int, float]]],
    cache: float | None,
) -> tuple[list[float], list[float]]:
    """Cold bytes read and written by each op of a step that is repeated.

    reads, writes: for each op in order, (buffer, bytes) of each distinct buffer it touches.
    cache: usable size of the last-level cache [byte]; None: unknown, so everything is cold.

    The step is walked twice and the second walk counts: what the end of a step leaves in the cache, the next one finds.
    An output is cold beyond the cache's size: smaller ones may be overwritten or consumed before they reach memory.
    """
    if cache is None:
        return [sum(b for _, b in op) for op in reads], [sum(b for _, b in op) for op in writes]
    held: OrderedDict[int, float] = OrderedDict()
    total = 0.0
    cold_reads: list[float] = []
    cold_writes: list[float] = []
    for counting in (False, True):
        for op_reads, op_writes in zip(reads, writes, strict=True):
            # Of a buffer of which only a part was touched, only so much can be there.
            cold = sum(max(0.0, size - held.get(buffer, 0.0)) for buffer, size in op_reads)
            for buffer, size in (*op_reads, *op_writes):
                before = held.pop(buffer, 0.0)
                held[buffer] = max(size, before)
                total += held[buffer] - before
            while total > cache and held:
                total -= held.popitem(last=False)[1]
            if counting:
                cold_reads.append(cold)
                cold_writes.append(max(0.0, sum(size for _, size in op_writes) - cache))
    return cold_reads, cold_writes


def external_bytes(
    reads: Sequence[Sequence[tuple[int, float]]], writes: Sequence[Sequence[tuple[int, float]]]
) -> float:
    """Bytes a step must move whatever its kernels are: what comes from before it and what outlives it.

    A buffer that is read before the step writes it came from outside (parameters, optimizer state, inputs): its bytes
    are read once, and written once if the step changes it. A buffer that the step writes and never reads is a result.
    Everything else could stay on the chip.
    """
    came: dict[int, float] = {}
    made: dict[int, float] = {}
    changed: dict[int, float] = {}
    for op_reads, op_writes in zip(reads, writes, strict=True):
        for buffer, size in op_reads:
            if buffer in made:
                made[buffer] = 0.0
            else:
                came[buffer] = max(came.get(buffer, 0.0), size)
        for buffer, size in op_writes:
            if buffer in came:
                changed[buffer] = max(changed.get(buffer, 0.0), size)
            else:
                made[buffer] = size
    return sum(came.values()) + sum(changed.values()) + sum(made.values())


class Cold(NamedTuple):
    """Bytes of each op that come from main memory, that go to it, and their sum at the upper end (None: a point)."""

    read: list[float]
    written: list[float]
    high: list[float | None]


def buffers_known(profile: Profile) -> bool:
    """Whether the profile says which ops touch the same buffer: a Chrome trace names none."""
    return profile.imported is None or profile.imported.buffers


def cold_traffic(profile: Profile, device: Device) -> Cold:
    """What the history of the buffers says about the caches of `device`.

    Without a history what exceeds the cache is cold for sure and all may be; with one the interval is a point. A cache
    of which nobody knows how fast it is takes no byte from main memory: it would give it for free.
    """
    reads, writes = accesses(profile)
    if buffers_known(profile):
        return Cold(*cold_bytes(reads, writes, device.serves), [None] * len(profile.ops))
    size = device.serves or 0.0
    sums = [[sum(each for _, each in op) for op in accessed] for accessed in (reads, writes)]
    low = [[max(0.0, whole - size) for whole in many] for many in sums]
    return Cold(low[0], low[1], [read + written for read, written in zip(*sums, strict=True)])


def accesses(profile: Profile) -> tuple[Accesses, Accesses]:
    """(buffer, bytes) of each op's reads and of its writes."""
    signatures = profile.signatures
    return (
        [tuple(zip(op.reads, signatures[op.signature].reads, strict=True)) for op in profile.ops],
        [tuple(zip(op.writes, signatures[op.signature].writes, strict=True)) for op in profile.ops],
    )
