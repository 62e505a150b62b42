"""Which bytes of an op have to come from main memory, from the history of its buffers.

An input is warm if the distinct bytes touched since its last use, its own included, fit the usable last-level cache.
That is exactly what a least-recently-used list of buffers, cut at the cache's size, still holds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.core.device import Device
from roofline.core.rows import Ints, buffers, buffers_known, per_profile, rows, settled
from roofline.core.schema import Profile, Signature

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Accesses:
    """The buffers that the ops of a step touch, op after op: of each op those that it reads, then those it writes.

    buffer: their numbers; size: bytes of each that are touched. reads, writes: how many each op has.
    """

    buffer: Ints
    size: Array
    reads: Ints
    writes: Ints

    @property
    def written(self) -> NDArray[np.bool_]:
        """Which accesses are writes."""
        kinds = np.tile(np.asarray([False, True]), len(self.reads))
        return np.repeat(kinds, np.stack([self.reads, self.writes], axis=1).ravel())

    @property
    def numbered(self) -> Ints:
        """The buffers, numbered from 0 on without a hole."""
        found: Ints = np.unique(self.buffer, return_inverse=True)[1]
        return found


@per_profile
def accesses(profile: Profile) -> Accesses:
    """The accesses of a step: its ops have the buffers, their signatures the sizes."""
    of, touched = rows(profile), buffers(profile)
    sizes = [(*signature.reads, *signature.writes) for signature in profile.signatures]
    many = of.reads + of.writes
    starts = np.cumsum([0, *map(len, sizes)])[of.signature] if sizes else many
    here = np.arange(len(touched)) + np.repeat(starts - (np.cumsum(many) - many), many)
    size = np.asarray([each for one in sizes for each in one], np.float64)[here]
    return Accesses(touched, settled(size), of.reads, of.writes)


def cold_reads(touched: Accesses, cache: float) -> list[float]:
    """Cold bytes read by each op of a step that is repeated.

    cache: usable size of the last-level cache [byte].

    The step is walked twice and the second walk counts: what the end of a step leaves in the cache, the next one finds.
    The list of the buffers used last is the accesses themselves: a buffer stands where it was accessed last, and the
    cache holds all that stand behind a place that moves on.
    """
    buffers, sizes = touched.numbered.tolist(), touched.size.tolist()
    reads, ends = touched.reads.tolist(), np.cumsum(touched.reads + touched.writes).tolist()
    number = len(buffers)
    held = [0.0] * (max(buffers, default=-1) + 1)  # bytes of each buffer that the cache holds
    last = [-1] * len(held)  # where it was accessed last, the second walk counted on
    oldest, total = 0, 0.0
    found: list[float] = []
    for counting in (False, True):
        start, walked = 0, number * counting
        for some, end in zip(reads, ends, strict=True):
            if counting:
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
    return found


def external_bytes(touched: Accesses) -> float:
    """Bytes a step must move whatever its kernels are: what comes from before it and what outlives it.

    A buffer that is read before the step writes it came from outside (parameters, optimizer state, inputs): its bytes
    are read once, and written once if the step changes it. A buffer that the step writes and never reads is a result.
    Everything else could stay on the chip.
    """
    buffer, written, size = touched.numbered, touched.written, touched.size
    place, number = np.arange(len(buffer)), int(buffer.max(initial=-1)) + 1
    first, read_last, written_last = np.full((3, number), -1)
    first[buffer[::-1]] = place[::-1]
    read_last[buffer[~written]] = place[~written]
    written_last[buffer[written]] = place[written]
    came = ~written[first]
    most = np.zeros((2, number))
    np.maximum.at(most, (written.astype(np.int64), buffer), size)
    result = ~came & (written_last > read_last)
    return float(most[:, came].sum() + size[written_last[result]].sum())


class Cold(NamedTuple):
    """Bytes of each op that come from main memory, that go to it, and their sum at the upper end (None: a point)."""

    read: Array
    written: Array
    high: Array | None


def cold_traffic(profile: Profile, device: Device) -> Cold:
    """What the history of the buffers says about the caches of `device`.

    Without a history what exceeds the cache is cold for sure and all may be, but for what the op right before wrote
    (`handed_over`); with one the interval is a point. A cache of which nobody knows how fast it is takes no byte from
    main memory: it would give it for free. An output is cold beyond the cache's size: smaller ones may be overwritten
    or consumed before they reach memory.
    """
    signature, size = rows(profile).signature, device.serves
    read, written = (
        np.asarray([sum(getattr(one, name)) for one in profile.signatures], np.float64)[signature]
        for name in ("reads", "writes")
    )
    beyond = np.maximum(0.0, written - (size or 0.0))
    if not buffers_known(profile):
        high = read + written
        if size is not None:
            high = high - handed_over(profile, size)
        return Cold(np.maximum(0.0, read - (size or 0.0)), beyond, high)
    return Cold(read if size is None else _cold_reads(profile, size), beyond, None)


@per_profile
def handed_over(profile: Profile, cache: float) -> Array:
    """Bytes that each op of a step without a history reads from the cache, since the op right before it wrote them.

    cache: usable size of the last-level cache [byte].

    An input of just as many bytes as an output of the op before it is taken to be that output. It is in the cache where
    all that was written and all that the op itself touches fit together: else what it writes pushes out what it has not
    read yet. Neither op may run beside another, since what is before what is then not known.
    """
    of = rows(profile)
    found = np.zeros(len(of.signature))
    alone = (of.overlap[1:] == 0) & (of.overlap[:-1] == 0)
    pairs = np.stack([of.signature[:-1], of.signature[1:]])[:, alone]
    if pairs.size:
        unique, which = np.unique(pairs, axis=1, return_inverse=True)
        handed = [_handed(profile.signatures[a], profile.signatures[b], cache) for a, b in unique.T.tolist()]
        found[1:][alone] = np.asarray(handed, np.float64)[which.ravel()]
    return settled(found)


def _handed(before: Signature, after: Signature, cache: float) -> float:
    """Bytes of the buffers that the one op wrote and the other reads, by their sizes, where the cache holds it all."""
    if sum((*before.writes, *after.reads, *after.writes)) > cache:
        return 0.0
    return sum(size * count for size, count in (Counter(before.writes) & Counter(after.reads)).items())


@per_profile
def _cold_reads(profile: Profile, cache: float) -> Array:
    found: Array = settled(np.asarray(cold_reads(accesses(profile), cache), np.float64))
    return found
