"""Measure main memory of a GPU, by access pattern."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from roofline.devices.cuda import kernels, nvrtc, timer
from roofline.devices.cuda.card import grid, l2_size
from roofline.devices.sampling import Candidate, Finding, ceiling, fastest_first

_MIB = 2**20


def dram(wanted: Collection[str], *, seconds: float, conditions: str, date: str) -> Finding:
    """Measure the bandwidth of each pattern on arrays that no cache holds.

    Reading has two candidates: a sum, and plain loads, which a fused kernel may come nearer to.
    """
    import torch

    free = torch.cuda.mem_get_info()[0]
    size = int(min(max(16 * l2_size(), 256 * _MIB), 1e9, free / 4 / 3)) // 4096 * 4096
    a, b, c = (torch.full((size // 4,), 0.5, device="cuda") for _ in range(3))
    total = torch.empty((), device="cuda")
    ops: dict[str, tuple[int, str, Callable[[], object]]] = {
        "read": (1, "sum", lambda: torch.sum(a, dim=0, out=total)),
        "write": (1, "fill_", lambda: c.fill_(0.5)),
        "copy": (2, "copy_", lambda: c.copy_(a)),
        "triad": (3, "add(out=)", lambda: torch.add(a, b, alpha=1.5, out=c)),
        "inplace": (2, "mul_", lambda: c.mul_(1.0)),
        "update": (3, "add_", lambda: c.add_(a, alpha=1e-9)),
    }
    where = f"arrays of {size // _MIB} MiB, {conditions}"
    ceilings, notes = {}, {}
    for pattern, (moved, label, run) in ops.items():
        if f"dram.{pattern}" not in wanted:
            continue
        candidates = [Candidate(label, float(moved * size), run)]
        if pattern == "read":
            try:
                candidates.append(loads(a))
            except RuntimeError as error:
                notes["dram.read by plain loads"] = str(error).partition("\n")[0]
        best = fastest_first(candidates, seconds / len(ops), timer.events)[0]
        ceilings[f"dram.{pattern}"] = ceiling(best, where, date)
    return Finding(ceilings, notes=notes)


def loads(data: Any) -> Candidate:
    """Read a tensor once with a kernel that does nothing else; neighbouring threads read neighbouring numbers."""
    import torch

    launch_grid = grid(kernels.READERS)
    turn = launch_grid.total * kernels.LOAD  # bytes that all threads read with one load each
    thread_loads = data.numel() * data.element_size() // turn // kernels.IN_FLIGHT * kernels.IN_FLIGHT
    if not thread_loads:
        raise RuntimeError("the array is too small for this GPU")
    out = torch.empty((), device="cuda")
    run = partial(
        nvrtc.kernel(kernels.reread(), "reread"),
        launch_grid,
        data,
        out,
        ctypes.c_longlong(launch_grid.threads),
        ctypes.c_longlong(launch_grid.total),
        ctypes.c_int(thread_loads),
        ctypes.c_int(thread_loads),
    )
    return Candidate("plain loads", float(thread_loads * turn), run)
