"""Which bytes of an op have to come from main memory, and which go to it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.accesses import accesses
from roofline.analysis.caches.least_recently_used import cold_reads
from roofline.analysis.caches.loops import times, unrolled
from roofline.core.device import Device
from roofline.core.rows import buffers_known, per_profile, rows, settled
from roofline.core.schema import Profile, Signature

Array = NDArray[np.float64]


class Cold(NamedTuple):
    """Bytes of each op that come from main memory, that go to it, and their sum at the upper end (None: a point)."""

    read: Array
    written: Array
    high: Array | None


def cold_traffic(profile: Profile, device: Device) -> Cold:
    """What the history of the buffers says about the caches of `device`.

    Without a history what exceeds the cache is cold for sure and all may be, but for what the op right before wrote
    (`handed_over`); with one the interval is a point. An input that is larger than the cache is cold as a whole: its
    end pushes its begin out, and then its begin pushes out its end. A cache of which nobody knows how fast it is takes
    no byte from main memory: it would give it for free. An output is cold beyond the cache's size: smaller ones may be
    overwritten or consumed before they reach memory.
    """
    signature, size = rows(profile).signature, device.serves
    read, written = (
        np.asarray([sum(getattr(one, name)) for one in profile.signatures], np.float64)[signature]
        for name in ("reads", "writes")
    )
    often = times(profile).astype(np.float64)
    beyond: Array = often * np.maximum(0.0, written - (size or 0.0))
    if not buffers_known(profile):
        everything = (read + written) * often
        if size is None:
            return Cold(read * often, beyond, everything)
        least = np.asarray([_never_held(one.reads, size) for one in profile.signatures], np.float64)[signature]
        return Cold(least * often, beyond, everything - handed_over(profile, size))
    return Cold(read * often if size is None else _cold_reads(profile, size), beyond, None)


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
def _cold_reads(profile: Profile, cache: float) -> Array:
    often, touched = times(profile), accesses(profile)
    if (often == 1).all():
        found: Array = settled(np.asarray(cold_reads(touched, cache), np.float64))
        return found
    order, stands_for = unrolled(often)
    cold = np.asarray(cold_reads(touched.of(order), cache), np.float64) * stands_for
    return settled(np.bincount(order, cold, len(often)))
