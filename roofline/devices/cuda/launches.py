"""Launches on a GPU: the least duration of a kernel on one element, by what launched it.

No kernel ends sooner, however little it does. A replayed graph starts its kernels one after the other on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from statistics import median
from typing import Any

from roofline.core.device import Ceiling
from roofline.devices.sampling import Finding

#: Kernels of a graph, and how often it is replayed.
KERNELS, REPLAYS = 200, 5


def launch(wanted: Collection[str], *, conditions: str, date: str) -> Finding:
    """The least duration of a kernel, by the profiler."""
    found, notes = {}, {}
    for name in wanted:
        method, prepare = PROBES[name]
        durations = _durations(prepare())
        if not durations:
            notes[name] = "the profiler recorded no kernel"
            continue
        least = min(durations)
        found[name] = Ceiling(
            value=least,
            source=f"measured: least duration of {method}, {len(durations)} kernels, {conditions}",
            spread=round(1 - least / median(durations), 4),
            date=date,
        )
    return Finding(found, notes=notes)


def _eager() -> Callable[[], None]:
    import torch

    x = torch.ones(1, device="cuda")

    def run() -> None:
        for _ in range(500):
            x.neg_()

    run()
    return run


def _graph() -> Callable[[], None]:
    import torch

    x = torch.ones(1, device="cuda")
    x.neg_()  # loads the kernel, which must not happen while a graph is captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(KERNELS):
            x.neg_()
    run = partial(_replay, graph, x)
    run()
    return run


def _replay(graph: Any, held: Any) -> None:
    """held: the tensor whose address the graph has; it must live as long."""
    for _ in range(REPLAYS):
        graph.replay()


def _durations(run: Callable[[], None]) -> list[float]:
    """Durations of the kernels that `run` enqueues [s]."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    return [
        1e-9 * event.duration_ns()
        for event in profiler.profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]  # not in its __all__
        and event.duration_ns() > 0
        and not any(word in event.name() for word in ("Memcpy", "Memset", "Sync"))
    ]


#: How each launch floor is measured, in words and in code.
PROBES: dict[str, tuple[str, Callable[[], Callable[[], None]]]] = {
    "launch.torch-eager": ("a kernel on one element", _eager),
    "launch.cuda-graph": (f"a kernel on one element in a replayed graph of {KERNELS}", _graph),
}
