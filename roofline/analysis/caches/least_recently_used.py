"""What a last-level cache still holds of the buffers that a step touched.

An input is warm if the distinct bytes touched since its last use, its own included, fit the usable last-level cache.
That is exactly what a least-recently-used list of buffers, cut at the cache's size, still holds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import numpy as np

from roofline.analysis.caches.accesses import Accesses
from roofline.analysis.caches.repeats import Repeat, repeats


def cold_reads(touched: Accesses, cache: float) -> list[float]:
    """Cold bytes read by each op of a step that is repeated.

    cache: usable size of the last-level cache [byte].

    The step is walked twice and the second walk counts: what the end of a step leaves in the cache, the next one finds.
    Once the second walk has the cache as the first one had it there, it goes on like the first. So does a turn of a
    loop in the step that finds the cache as the turn before did.
    """
    walk = _Walk(touched, cache)
    stretches = list(_stretches(len(touched.reads), repeats(touched)))
    first, once = [], []
    for stretch in stretches:
        once += walk.through(stretch)
        first.append(walk.state())
    found: list[float] = []
    for state, stretch in zip(first, stretches, strict=True):
        found += walk.through(stretch)
        if walk.state() == state:
            return found + once[stretch.end :]
    return found


def _stretches(ops: int, loops: list[Repeat]) -> Iterator[Repeat]:
    """The step as loops and what is between them, cut where the two walks are compared.

    That is rarely, where as much again was walked through, since it costs as much as there are buffers.
    """
    behind = 0
    for loop in (*loops, Repeat(ops, 0, 0)):
        while behind < loop.begin:
            end = min(loop.begin, max(1024, 2 * behind))
            yield Repeat(behind, end - behind, 1)
            behind = end
        if loop.turns:
            yield loop
            behind = loop.end


class _Walk:
    """The cache while a step is walked through: bytes of each buffer in it, the least recently used one first."""

    def __init__(self, touched: Accesses, cache: float) -> None:
        self._held: OrderedDict[int, float] = OrderedDict()
        self._total, self._cache, self._touched = 0.0, cache, touched
        self._ends = np.concatenate([[0], np.cumsum(touched.reads + touched.writes)])

    def state(self) -> tuple[list[tuple[int, float]], float]:
        """What the cache holds, in its order; what follows depends on nothing else."""
        return list(self._held.items()), self._total

    def through(self, stretch: Repeat) -> list[float]:
        """Cold bytes read by each op of all turns of a stretch."""
        found: list[float] = []
        for turn in range(stretch.turns):
            before = self.state() if turn and not turn & (turn - 1) else None  # turns 1, 2, 4, ...: rarely, as above
            cold = self._turn(slice(stretch.begin, stretch.begin + stretch.period))
            found += cold
            if before is not None and self.state() == before:
                return found + cold * (stretch.turns - turn - 1)
        return found

    def _turn(self, ops: slice) -> list[float]:
        touched, held, cache = self._touched, self._held, self._cache
        first, last = self._ends[ops.start], self._ends[ops.stop]
        buffers, sizes = touched.buffer[first:last].tolist(), touched.size[first:last].tolist()
        ends = (self._ends[ops.start + 1 : ops.stop + 1] - first).tolist()
        there, use, begin, total, found = held.get, held.move_to_end, 0, self._total, []
        for reads, end in zip(touched.reads[ops].tolist(), ends, strict=True):
            # Of a buffer of which only a part was touched, only so much can be there. An op may read several parts.
            read = zip(buffers[begin : begin + reads], sizes[begin : begin + reads], strict=True)
            found.append(sum([size - part for buffer, size in read if size > (part := there(buffer, 0.0))]))
            for buffer, size in zip(buffers[begin:end], sizes[begin:end], strict=True):
                part = there(buffer, 0.0)
                if size > part:
                    held[buffer] = size
                    total += size - part
                if part:
                    use(buffer)
            while total > cache and held:
                total -= held.popitem(last=False)[1]
            begin = end
        self._total = total
        return found
