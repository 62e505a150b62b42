"""What a last-level cache still holds of the buffers that a step touched.

An input is warm if the distinct bytes touched since its last use, its own included, fit the usable last-level cache.
That is exactly what a least-recently-used list of buffers, cut at the cache's size, still holds.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from roofline.analysis.caches.accesses import Accesses


def cold_reads(touched: Accesses, cache: float) -> list[float]:
    """Cold bytes read by each op of a step that is repeated.

    cache: usable size of the last-level cache [byte].

    The step is walked twice and the second walk counts: what the end of a step leaves in the cache, the next one finds.
    Once the second walk has the cache as the first one had it there, it goes on like the first.
    """
    walk = _Walk(touched.numbered.tolist(), touched.size.tolist(), cache)
    reads, ends = touched.reads.tolist(), np.cumsum(touched.reads + touched.writes).tolist()
    stops = _stops(len(reads))
    first, once = [], []
    for start, stop in pairwise(stops):
        once += walk.through(reads[start:stop], ends[start:stop])
        first.append(walk.held.copy())
    walk.again()
    found: list[float] = []
    for held, (start, stop) in zip(first, pairwise(stops), strict=True):
        found += walk.through(reads[start:stop], ends[start:stop])
        if walk.settled and walk.held == held:
            return found + once[stop:]
    return found


def _stops(ops: int) -> list[int]:
    """Where the two walks are compared: rarely, since that costs as much as there are buffers."""
    stops = [0]
    while stops[-1] < ops:
        stops.append(min(ops, max(1024, 2 * stops[-1])))
    return stops


class _Walk:
    """The least recently used buffers while a step is walked through, twice.

    The list of the buffers used last is the accesses themselves: a buffer stands where it was accessed last, and the
    cache holds all that stand behind a place that moves on.
    """

    def __init__(self, buffers: list[int], sizes: list[float], cache: float) -> None:
        self.held = [0.0] * (max(buffers, default=-1) + 1)  # bytes of each buffer that the cache holds
        self._last = [-1] * len(self.held)  # where it was accessed last, the second walk counted on
        self._buffers, self._sizes, self._cache = buffers, sizes, cache
        self._walked, self._start, self._oldest, self._total = 0, 0, 0, 0.0

    def again(self) -> None:
        """Walk through the step once more, with the cache as it is."""
        self._walked, self._start = len(self._buffers), 0

    @property
    def settled(self) -> bool:
        """Whether the cache holds nothing any more that was accessed last in the walk before."""
        return self._oldest >= self._walked

    def through(self, reads: list[int], ends: list[int]) -> list[float]:
        """Cold bytes read by each of the next ops. reads: how many each has; ends: where its accesses end."""
        buffers, sizes, held, last, cache = self._buffers, self._sizes, self.held, self._last, self._cache
        start, oldest, total, number, walked = self._start, self._oldest, self._total, len(buffers), self._walked
        found = []
        for some, end in zip(reads, ends, strict=True):
            cold = 0.0
            for place in range(start, start + some):
                # Of a buffer of which only a part was touched, only so much can be there.
                absent = sizes[place] - held[buffers[place]]
                if absent > 0:
                    cold += absent
            found.append(cold)
            for place in range(start, end):
                buffer, size = buffers[place], sizes[place]
                before = held[buffer]
                if size > before:
                    total += size - before
                    held[buffer] = size
                last[buffer] = walked + place
            while total > cache and oldest < walked + end:
                buffer = buffers[oldest if oldest < number else oldest - number]
                if last[buffer] == oldest:
                    total -= held[buffer]
                    held[buffer] = 0.0
                oldest += 1
            start = end
        self._start, self._oldest, self._total = start, oldest, total
        return found
