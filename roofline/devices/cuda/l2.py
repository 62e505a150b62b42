"""Measure the last-level cache of a GPU: bandwidth against working set, in passes over it that are repeated.

A kernel that reads gives the bandwidth. A kernel that reads and writes in place, launched once for each pass, gives the
usable size: as with the ops of a step, one pass ends before the next begins, and leaves its lines dirty. A kernel that
makes all passes by itself finds more: its blocks get ahead of each other, and what is touched in no order is evicted in
none. On an H100 with 50 MiB its bandwidth was midway between the cache's and the memory's at 60 MiB, where counters saw
ops that read and write 50 MiB again and again take all of it from memory, and half of it at 36 MiB (docs/h100.md).
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from roofline.core.device import Cache
from roofline.devices.cuda import kernels, nvrtc, timer
from roofline.devices.cuda.card import Grid, grid, l2_size
from roofline.devices.sampling import Best, Candidate, Finding, ceiling, fastest_first, usable_size

#: Working sets as shares of the size that the driver tells. The last is main memory's: the cache holds 6 % of it.
SHARES = (*(0.1, 0.2, 0.3), *(number / 20 for number in range(8, 21)), *(1.25, 1.5, 2.0, 3.0, 4.0, 16.0))
#: Bytes that all passes touch at least: a fifth of a millisecond on an H100, many times what starting them takes.
PER_LAUNCH = 2**30
#: How often a working set is passed over at least.
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
    reread = nvrtc.kernel(kernels.reread(), "reread")
    for slice_loads in slices:
        size = slice_loads * turn
        for candidate, curve in (
            (_reading(reread, launch_grid, data, out, slice_loads), read_bests),
            (_in_place(data[: size // 4]), write_bests),
        ):
            best = fastest_first([candidate], seconds / (2 * len(slices)), timer.events, rounds=1)[0]
            if size not in curve or best.rate > curve[size].rate:
                curve[size] = best
    reads, writes = find_edges(read_bests, float(cached)), find_edges(write_bests, float(cached))
    if reads is None or writes is None:
        return Finding(notes={"cache.llc": "no working set fits the cache"})
    where = f"working set of {reads[0] / _MIB:.3g} MiB, {conditions}"
    source = (
        "measured with reads and writes: the largest working set that mul_ passes over at more than the middle between "
        f"the cache's rate and that of {max(write_bests) / _MIB:.0f} MiB, {conditions}"
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


def _in_place(data: Any) -> Candidate:
    """Read and write all of `data` in each of several kernels, which a graph launches one behind the other."""
    import torch

    passes = max(PASSES, PER_LAUNCH // data.nbytes)
    data.mul_(1.0)  # loads the kernel, which must not happen while a graph is captured
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(passes):
            data.mul_(1.0)
    return Candidate(f"mul_ on {data.nbytes / _MIB:.3g} MiB again and again", 2.0 * passes * data.nbytes, graph.replay)
