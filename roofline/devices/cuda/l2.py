"""The last-level cache of a GPU: bandwidth against working set, by kernels that go over it again and again.

One reads and gives the bandwidth. The other reads and writes, and gives the usable size: what a step writes stays dirty
in the cache until it is evicted, and where the cache is two halves a line may stand in both, of which reading alone, by
the same block in each pass, shows little.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from functools import partial
from math import gcd
from typing import Any

from roofline.core.device import Cache
from roofline.devices.cuda import kernels, nvrtc, timer
from roofline.devices.cuda.card import Grid, grid, l2_size
from roofline.devices.sampling import Best, Candidate, Finding, ceiling, fastest_first, usable

#: Working sets as shares of the size that the driver tells. The last is main memory's: the cache holds 6 % of it.
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 16.0)
#: Bytes that one launch reads at least: a fifth of a millisecond on an H100, many times what starting it takes.
PER_LAUNCH = 2**30
#: How often a launch reads its working set at least.
PASSES = 8

_MIB = 2**20


def cache(
    wanted: Collection[str],
    *,
    seen: dict[int, Best],
    rewritten: dict[int, Best],
    seconds: float,
    conditions: str,
    date: str,
) -> Finding:
    """The best bandwidth of reading, and the usable size by reading and writing.

    seen, rewritten: the best of each working set, read, and read and written; kept from turn to turn.
    """
    import torch

    cached = l2_size()
    if not cached:
        return Finding(notes={"cache.llc": "the driver does not tell the size of the cache"})
    whole = grid(kernels.READERS)
    slices = sorted({slice_of(share * cached, whole) for share in SHARES})
    turn = whole.total * kernels.LOAD
    data = torch.rand(slices[-1] * turn // 4, device="cuda")
    out = torch.empty((), device="cuda")
    reread, rewrite = nvrtc.kernel(kernels.reread(), "reread"), nvrtc.kernel(kernels.rewrite(), "rewrite")
    for each in slices:
        for candidate, curve in (
            (_reading(reread, whole, data, out, each), seen),
            (_rewriting(rewrite, whole, data, each), rewritten),
        ):
            best = fastest_first([candidate], seconds / (2 * len(slices)), timer.events, rounds=1)[0]
            size = each * turn
            if size not in curve or best.rate > curve[size].rate:
                curve[size] = best
    reads, writes = edges(seen, float(cached)), edges(rewritten, float(cached))
    if reads is None or writes is None:
        return Finding(notes={"cache.llc": "no working set fits the cache"})
    where = f"working set of {reads[0] / _MIB:.3g} MiB, {conditions}"
    source = (
        "measured with reads and writes: the largest working set that is read and written at more than the middle "
        f"between the cache's rate and that of {max(rewritten) / _MIB:.0f} MiB ({reads[1] / _MIB:.3g} MiB by reads "
        f"alone), {conditions}"
    )
    level = Cache(level="llc", size=writes[1], source=source)
    return Finding({"cache.llc": ceiling(seen[int(reads[0])], where, date)}, (level,))


def slice_of(size: float, whole: Grid) -> int:
    """Loads of each thread that together read about `size` bytes once; at least one."""
    return max(1, round(size / (whole.total * kernels.LOAD)))


def loads(each: int, whole: Grid) -> int:
    """Loads of each thread in one launch that reads slices of `each` loads: a multiple of those in flight."""
    wanted = max(PASSES * each, -(-PER_LAUNCH // (whole.total * kernels.LOAD)))
    return -(-wanted // kernels.IN_FLIGHT) * kernels.IN_FLIGHT


def edges(seen: dict[int, Best], cached: float) -> tuple[float, float] | None:
    """Where the cache is fastest and its usable size [byte]; None if no working set fits it."""
    curve: Sequence[tuple[float, float]] = [(float(size), seen[size].rate) for size in sorted(seen)]
    return usable(curve, 0.0, cached, cap=cached, beyond=curve[-1][1])


def _reading(kernel: nvrtc.Kernel, whole: Grid, data: Any, out: Any, each: int) -> Candidate:
    """Reading a slice again and again: neighbouring threads of a block read neighbouring numbers."""
    number = loads(each, whole)
    run = partial(
        kernel,
        whole,
        data,
        out,
        ctypes.c_longlong(each * whole.threads),
        ctypes.c_longlong(whole.threads),
        ctypes.c_int(each),
        ctypes.c_int(number),
    )
    label = f"reading slices of {each * whole.threads * kernels.LOAD // 1024} KiB again and again"
    return Candidate(label, float(number * whole.total * kernels.LOAD), run)


def _rewriting(kernel: nvrtc.Kernel, whole: Grid, data: Any, each: int) -> Candidate:
    """Reading and writing a slice, then one of another block, and so on: each pass goes over the whole working set."""
    number = loads(each, whole)
    run = partial(
        kernel,
        whole,
        data,
        ctypes.c_longlong(each * whole.threads),
        ctypes.c_longlong(whole.threads),
        ctypes.c_int(each),
        ctypes.c_int(number),
        ctypes.c_int(shift(whole.blocks)),
    )
    label = f"reading and writing slices of {each * whole.threads * kernels.LOAD // 1024} KiB in turns"
    return Candidate(label, 2.0 * number * whole.total * kernels.LOAD, run)


def shift(blocks: int) -> int:
    """By how many slices a block moves from pass to pass: an odd part of them without a common divisor, so that a block
    comes to each slice and two neighbouring passes lie far apart."""
    return next((number for number in range(blocks // 3 | 1, blocks) if gcd(number, blocks) == 1), 0)
