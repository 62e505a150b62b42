"""Which bytes of an op have to come from main memory, from the history of its buffers.

An input is warm if the distinct bytes touched since its last use, its own included, fit the usable last-level cache.
That is exactly what a least-recently-used list of buffers, cut at the cache's size, still holds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


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
