"""Measure the last-level cache of a GPU: bandwidth against working set, by kernels that repeat their passes over it.

The first kernel reads and gives the bandwidth. The second reads and writes, and gives the usable size: lines that a
step writes stay dirty in the cache until they are evicted, and in a cache of two halves a line may be in both, which
reading alone, by the same block in each pass, hardly shows.
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
from roofline.devices.sampling import Best, Candidate, Finding, ceiling, fastest_first, usable_size

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
    read_bests: dict[int, Best],
    write_bests: dict[int, Best],
    seconds: float,
    conditions: str,
    date: str,
) -> Finding:
    """Measure the best bandwidth of reading, and the usable size by reading and writing.

    read_bests, write_bests: the best of each working set [byte], read, and read and written; passed from turn to
    turn.
    """
    import torch

    cached = l2_size()
    if not cached:
        return Finding(notes={"cache.llc": "the driver does not tell the size of the cache"})
    launch_grid = grid(kernels.READERS)
    slices = sorted({slice_of(share * cached, launch_grid) for share in SHARES})
    turn = launch_grid.total * kernels.LOAD
    data = torch.rand(slices[-1] * turn // 4, device="cuda")
    out = torch.empty((), device="cuda")
    reread, rewrite = nvrtc.kernel(kernels.reread(), "reread"), nvrtc.kernel(kernels.rewrite(), "rewrite")
    for slice_loads in slices:
        for candidate, curve in (
            (_reading(reread, launch_grid, data, out, slice_loads), read_bests),
            (_rewriting(rewrite, launch_grid, data, slice_loads), write_bests),
        ):
            best = fastest_first([candidate], seconds / (2 * len(slices)), timer.events, rounds=1)[0]
            size = slice_loads * turn
            if size not in curve or best.rate > curve[size].rate:
                curve[size] = best
    reads, writes = find_edges(read_bests, float(cached)), find_edges(write_bests, float(cached))
    if reads is None or writes is None:
        return Finding(notes={"cache.llc": "no working set fits the cache"})
    where = f"working set of {reads[0] / _MIB:.3g} MiB, {conditions}"
    source = (
        "measured with reads and writes: the largest working set that is read and written at more than the middle "
        f"between the cache's rate and that of {max(write_bests) / _MIB:.0f} MiB ({reads[1] / _MIB:.3g} MiB by reads "
        f"alone), {conditions}"
    )
    level = Cache(level="llc", size=writes[1], source=source)
    return Finding({"cache.llc": ceiling(read_bests[int(reads[0])], where, date)}, (level,))


def slice_of(size: float, launch_grid: Grid) -> int:
    """Compute the loads of each thread that together read about `size` bytes once; at least one."""
    return max(1, round(size / (launch_grid.total * kernels.LOAD)))


def loads(slice_loads: int, launch_grid: Grid) -> int:
    """Compute the loads of each thread in one launch on slices of `slice_loads`: a multiple of those in flight."""
    wanted = max(PASSES * slice_loads, -(-PER_LAUNCH // (launch_grid.total * kernels.LOAD)))
    return -(-wanted // kernels.IN_FLIGHT) * kernels.IN_FLIGHT


def find_edges(bests: dict[int, Best], cached: float) -> tuple[float, float] | None:
    """Find the working set where the cache is fastest, and its usable size [byte]; None if no working set fits."""
    curve: Sequence[tuple[float, float]] = [(float(size), bests[size].rate) for size in sorted(bests)]
    return usable_size(curve, 0.0, cached, cap=cached, next_level=curve[-1][1])


def _reading(kernel: nvrtc.Kernel, launch_grid: Grid, data: Any, out: Any, slice_loads: int) -> Candidate:
    """Read a slice repeatedly: neighbouring threads of a block read neighbouring numbers."""
    number = loads(slice_loads, launch_grid)
    run = partial(
        kernel,
        launch_grid,
        data,
        out,
        ctypes.c_longlong(slice_loads * launch_grid.threads),
        ctypes.c_longlong(launch_grid.threads),
        ctypes.c_int(slice_loads),
        ctypes.c_int(number),
    )
    label = f"reading slices of {slice_loads * launch_grid.threads * kernels.LOAD // 1024} KiB again and again"
    return Candidate(label, float(number * launch_grid.total * kernels.LOAD), run)


def _rewriting(kernel: nvrtc.Kernel, launch_grid: Grid, data: Any, slice_loads: int) -> Candidate:
    """Read and write a slice, then one of another block, and so on: each pass covers the whole working set."""
    number = loads(slice_loads, launch_grid)
    run = partial(
        kernel,
        launch_grid,
        data,
        ctypes.c_longlong(slice_loads * launch_grid.threads),
        ctypes.c_longlong(launch_grid.threads),
        ctypes.c_int(slice_loads),
        ctypes.c_int(number),
        ctypes.c_int(shift(launch_grid.blocks)),
    )
    label = f"reading and writing slices of {slice_loads * launch_grid.threads * kernels.LOAD // 1024} KiB in turns"
    return Candidate(label, 2.0 * number * launch_grid.total * kernels.LOAD, run)


def shift(blocks: int) -> int:
    """Choose by how many slices a block moves from pass to pass: a number coprime to `blocks`, about a third of them.

    So a block comes to each slice, and two neighbouring passes lie far apart.
    """
    return next((number for number in range(blocks // 3 | 1, blocks) if gcd(number, blocks) == 1), 0)
