"""Find the bytes of an op that have to come from main memory, and that go to it."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.accesses import accesses
from roofline.analysis.caches.counted import counted_on
from roofline.analysis.caches.loops import times, unroll_loops
from roofline.analysis.caches.pieces import touch_pieces
from roofline.analysis.caches.recency import find_misses, find_write_backs
from roofline.analysis.caches.repeats import fold_repeats
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.rows import buffers_known, per_profile, rows, settled
from roofline.core.schema import Profile, Signature

#: Why bytes from and to main memory are a range: the profile names no buffers, or not where all results lie; the step
#: ran on a CPU; or it touches memory more often than is followed.
RangeReason = Literal["no buffers", "no addresses", "cpu", "too many touches"]


class Cold(NamedTuple):
    """Bytes of each op that come from main memory, that go to it, and their sum at the upper end (None: all points).

    reason: why they are a range, of some ops or of all; None where they are none.
    """

    read: Array
    written: Array
    high: Array | None
    reason: RangeReason | None = None


def cold_traffic(profile: Profile, device: Device) -> Cold:
    """Return the bytes from and to the main memory of `device`: counted ones, else by `_cold_by_rule`."""
    return with_counted(profile, device, _cold_by_rule(profile, device))


def with_counted(profile: Profile, device: Device, cold: Cold) -> Cold:
    """Replace the bytes of ops that hardware counters saw on that device by the counted ones, as a point."""
    counted = counted_on(profile, device)
    read, written = (np.where(counted.known, *columns) for columns in zip(counted[:2], cold[:2], strict=True))
    high = None if cold.high is None else np.where(counted.known, read + written, cold.high)
    is_range = high is not None and bool((high > read + written).any())
    return Cold(read, written, high, cold.reason if is_range else None)


def _cold_by_rule(profile: Profile, device: Device) -> Cold:
    """Follow the buffers of a step: what of them passes the last-level cache of `device`.

    An input comes from main memory if the distinct bytes touched since its last use, its own included, do not fit the
    cache. A result goes there when it is evicted, read before that or not, unless its memory is written again before;
    the op that wrote it is charged. Both follow from the buffers that ops touch and from where these lie.

    The results of an op are a point where the places of all of them are recorded. Those of another one are a range:
    from what exceeds the cache to all that would be evicted if they shared no memory. Whether other buffers have
    recorded places changes neither: what is only read is in memory of its own, and what is written somewhere is taken
    to be. On a CPU results are a range, up to what is evicted with buffers where they lay in one step: its allocators
    place them elsewhere in the next one, and no counters confirm the rule there. Where the buffers are not recorded,
    inputs are a range, too: what exceeds the cache is cold for sure, and all may be but for what the op right before
    wrote (`handed_over`).

    A cache of which nobody knows how fast it is takes no byte from main memory: it would give it for free.
    """
    signature, cache = rows(profile).signature, device.serves
    read, written = (
        np.asarray([sum(getattr(op_signature, name)) for op_signature in profile.signatures], np.float64)[signature]
        for name in ("reads", "writes")
    )
    often = times(profile).astype(np.float64)
    if cache is None:
        return Cold(read * often, written * often, None if buffers_known(profile) else (read + written) * often)
    exceeding: Array = often * np.maximum(0.0, written - cache)
    if not buffers_known(profile):
        least = np.asarray([_never_held(op_signature.reads, cache) for op_signature in profile.signatures], np.float64)[
            signature
        ]
        return Cold(least * often, exceeding, (read + written) * often - handed_over(profile, cache), "no buffers")
    cold_read, written_back, shared = _follow_buffers(profile, cache)
    reason: RangeReason
    if profile.device.kind == "cpu":
        point, reason = np.zeros(len(written), bool), "cpu"
    elif profile.addresses and not shared:
        point, reason = np.zeros(len(written), bool), "too many touches"
    else:
        point, reason = _results_located(profile), "no addresses"
    if point.all():
        return Cold(cold_read, written_back, None)
    least = np.where(point, written_back, exceeding)
    return Cold(cold_read, least, cold_read + np.maximum(least, written_back), reason)


@per_profile
def _results_located(profile: Profile) -> NDArray[np.bool_]:
    """Return bool[op]: whether the profile says where every buffer lies that the op writes."""
    touched = accesses(profile)
    located = np.asarray([*(address is not None for address in profile.addresses), False], bool)
    inside = (touched.buffer >= 0) & (touched.buffer < len(profile.addresses))
    lost = touched.written & ~located[np.where(inside, touched.buffer, -1)]
    return settled(np.bincount(touched.op, lost, len(touched.reads)) == 0)


def _never_held(reads: tuple[float, ...], cache: float) -> float:
    """Return the bytes of an op's inputs that a cache cannot have held, whatever was before."""
    fitting = sum(read for read in reads if read <= cache)
    return sum(reads) - fitting + max(0.0, fitting - cache)


@per_profile
def handed_over(profile: Profile, cache: float) -> Array:
    """Return the bytes that each op of a step without a history reads from the cache, written right before it.

    cache: usable size of the last-level cache [byte].

    An input of just as many bytes as an output of the op before it is taken to be that output. It is in the cache where
    all that was written and all that the op itself touches fit together: else what it writes pushes out what it has not
    read yet. Neither op may run beside another, since what is before what is then not known.
    """
    of = rows(profile)
    handed_bytes = np.zeros(len(of.signature))
    apart_in_time = (of.overlap[1:] == 0) & (of.overlap[:-1] == 0)
    signatures = profile.signatures
    # Pairs as single numbers: columns of two would be sorted far slower.
    pairs, inverse = np.unique(
        (of.signature[:-1] * len(signatures) + of.signature[1:])[apart_in_time], return_inverse=True
    )
    if pairs.size:
        signature_pairs = (divmod(pair, len(signatures)) for pair in pairs.tolist())
        handed = [_handed(signatures[before], signatures[after], cache) for before, after in signature_pairs]
        handed_bytes[1:][apart_in_time] = np.asarray(handed, np.float64)[inverse]
    return settled(handed_bytes)


def _handed(before: Signature, after: Signature, cache: float) -> float:
    """Return the bytes of the buffers that one op wrote and the other reads, by size, where the cache holds it all."""
    if sum((*before.writes, *after.reads, *after.writes)) > cache:
        return 0.0
    return sum(size * count for size, count in (Counter(before.writes) & Counter(after.reads)).items())


@per_profile
def _follow_buffers(profile: Profile, cache: float) -> tuple[Array, Array, bool]:
    """Return the bytes of each op read from main memory, and written to it; whether addresses could be followed."""
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
