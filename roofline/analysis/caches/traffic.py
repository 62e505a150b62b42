"""Which bytes of an op have to come from main memory, and which go to it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.accesses import accesses
from roofline.analysis.caches.counted import counted_on
from roofline.analysis.caches.loops import times, unroll_loops
from roofline.analysis.caches.pieces import touch_pieces
from roofline.analysis.caches.recency import find_misses, find_write_backs
from roofline.analysis.caches.repeats import fold_repeats
from roofline.core.device import Device
from roofline.core.rows import addresses_known, buffers_known, per_profile, rows, settled
from roofline.core.schema import Profile, Signature

Array = NDArray[np.float64]


class Cold(NamedTuple):
    """Bytes of each op that come from main memory, that go to it, and their sum at the upper end (None: a point)."""

    read: Array
    written: Array
    high: Array | None


def cold_traffic(profile: Profile, device: Device) -> Cold:
    """Bytes from and to the main memory of `device`: counted ones where there are any, else by `_cold_by_rule`."""
    return with_counted(profile, device, _cold_by_rule(profile, device))


def with_counted(profile: Profile, device: Device, cold: Cold) -> Cold:
    """The same bytes, of ops that hardware counters saw on that device the counted ones, as a point."""
    counted = counted_on(profile, device)
    read, written = (np.where(counted.known, *columns) for columns in zip(counted[:2], cold[:2], strict=True))
    return Cold(read, written, None if cold.high is None else np.where(counted.known, read + written, cold.high))


def _cold_by_rule(profile: Profile, device: Device) -> Cold:
    """Follow the buffers of a step: what of them passes the last-level cache of `device`.

    An input comes from main memory if the distinct bytes touched since its last use, its own included, do not fit the
    cache. A result goes there when it is evicted, read before that or not, unless its memory is written again before;
    the op that wrote it is charged. Both follow from the buffers that ops touch and from where these lie. Where it is
    not recorded which of them share memory, results are a range: from those that exceed the cache to all that would be
    evicted if none did. So they are on a CPU, up to what is evicted with buffers where they lay in one step: its
    allocators place them elsewhere in the next one, and no counters confirm the rule there. Where the buffers are not
    recorded either, inputs are a range, too: what exceeds the cache is cold for sure, and all may be but for what the
    op right before wrote (`handed_over`).

    A cache of which nobody knows how fast it is takes no byte from main memory: it would give it for free.
    """
    signature, cache = rows(profile).signature, device.serves
    read, written = (
        np.asarray([sum(getattr(one, name)) for one in profile.signatures], np.float64)[signature]
        for name in ("reads", "writes")
    )
    often = times(profile).astype(np.float64)
    if cache is None:
        return Cold(read * often, written * often, None if buffers_known(profile) else (read + written) * often)
    beyond: Array = often * np.maximum(0.0, written - cache)
    if not buffers_known(profile):
        least = np.asarray([_never_held(one.reads, cache) for one in profile.signatures], np.float64)[signature]
        return Cold(least * often, beyond, (read + written) * often - handed_over(profile, cache))
    cold_read, written_back, shared = _follow_buffers(profile, cache)
    if shared and addresses_known(profile) and profile.device.kind != "cpu":
        return Cold(cold_read, written_back, None)
    return Cold(cold_read, beyond, cold_read + np.maximum(beyond, written_back))


def _never_held(reads: tuple[float, ...], cache: float) -> float:
    """Bytes of an op's inputs that a cache cannot have held, whatever was before."""
    fitting = sum(read for read in reads if read <= cache)
    return sum(reads) - fitting + max(0.0, fitting - cache)


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
    signatures = profile.signatures
    # Pairs as single numbers: columns of two would be sorted far slower.
    pairs, which = np.unique((of.signature[:-1] * len(signatures) + of.signature[1:])[alone], return_inverse=True)
    if pairs.size:
        both = (divmod(pair, len(signatures)) for pair in pairs.tolist())
        handed = [_handed(signatures[before], signatures[after], cache) for before, after in both]
        found[1:][alone] = np.asarray(handed, np.float64)[which]
    return settled(found)


def _handed(before: Signature, after: Signature, cache: float) -> float:
    """Bytes of the buffers that the one op wrote and the other reads, by their sizes, where the cache holds it all."""
    if sum((*before.writes, *after.reads, *after.writes)) > cache:
        return 0.0
    return sum(size * count for size, count in (Counter(before.writes) & Counter(after.reads)).items())


@per_profile
def _follow_buffers(profile: Profile, cache: float) -> tuple[Array, Array, bool]:
    """Bytes of each op that are read from main memory, and that go there; whether addresses could be followed."""
    order, reads, writes = unroll_loops(times(profile))
    ops, reads_like, writes_like = fold_repeats(in_order := accesses(profile).of(order))
    folded = in_order.of(ops)
    touches = touch_pieces(folded, cache, profile.addresses)
    misses = find_misses(touches, cache)
    read, evicted = misses & ~touches.written, find_write_backs(touches, misses)
    cold = np.bincount(touches.op, touches.bytes * read, len(ops))[reads_like] * reads
    back = np.bincount(touches.op, touches.bytes * evicted, len(ops))[writes_like] * writes
    count = len(profile.ops)
    return settled(np.bincount(order, cold, count)), settled(np.bincount(order, back, count)), touches.shared
