"""Launches on a GPU: the least duration of a kernel that does next to nothing, by what launched it.

No kernel ends sooner, however little it does. One that reads before it writes waits for memory (1.12 us on an H100,
where a fill of one number took 0.93), so several are tried. A replayed graph starts its kernels one after the other on
the device.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from roofline.core.device import Ceiling
from roofline.devices.cuda import kernels, nvrtc
from roofline.devices.cuda.card import Grid
from roofline.devices.sampling import Finding

#: Kernels of a stretch or a graph, and how often it runs.
KERNELS, REPLAYS = 200, 5


def launch(wanted: Collection[str], *, conditions: str, date: str) -> Finding:
    """The least duration of a kernel, by the profiler."""
    found, notes = {}, {}
    for name in wanted:
        where, prepare = PROBES[name]
        seen = {method: times for method, call in _little() if (times := _durations(prepare(call)))}
        if seen:
            found[name] = least(seen, where, conditions, date)
        else:
            notes[name] = "the profiler recorded no kernel"
    return Finding(found, notes=notes)


def least(seen: Mapping[str, Sequence[float]], where: str, conditions: str, date: str) -> Ceiling:
    """The ceiling of kernels that did next to nothing. seen: the durations [s] of each kind; spread is of the least."""
    method = min(seen, key=lambda each: min(seen[each]))
    shortest, number = min(seen[method]), sum(map(len, seen.values()))
    return Ceiling(
        value=shortest,
        source=f"measured: least duration of a kernel{where} ({method}), {number} kernels, {conditions}",
        spread=round(1 - shortest / median(seen[method]), 4),
        date=date,
    )


def _little() -> Iterator[tuple[str, Callable[[], object]]]:
    """Kernels on one number, as words and as calls that enqueue them."""
    import torch

    x = torch.ones(1, device="cuda")
    yield "negating one number", x.neg_
    yield "filling one number", partial(x.fill_, 1.0)
    try:
        kernel = nvrtc.kernel(kernels.one_number(), "one_number")
    except RuntimeError:  # no compiler: torch's own remain
        return
    yield "one thread that writes one number", partial(kernel, Grid(blocks=1, threads=1), x)


def _eager(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(KERNELS):
            call()

    run()
    return run


def _graph(call: Callable[[], object]) -> Callable[[], None]:
    import torch

    call()  # loads the kernel, which must not happen while a graph is captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(KERNELS):
            call()
    run = partial(_replay, graph, call)
    run()
    return run


def _replay(graph: Any, held: Any) -> None:
    """held: has the tensor whose address the graph has; it must live as long."""
    for _ in range(REPLAYS):
        graph.replay()


def _durations(run: Callable[[], None]) -> list[float]:
    """Durations of the kernels that `run` enqueues [s]."""
    import torch

    # What torch.profiler.profile runs inside; that one warns of its cycles, of which there is none here.
    from torch.autograd.profiler import profile

    torch.cuda.synchronize()
    with profile(use_device="cuda", use_kineto=True) as profiler:
        run()
        torch.cuda.synchronize()
    return [
        1e-9 * event.duration_ns()
        for event in profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]  # not in its __all__
        and event.duration_ns() > 0
        and not any(word in event.name() for word in ("Memcpy", "Memset", "Sync"))
    ]


#: Where the kernels of each launch floor run, in words, and what runs a call there.
PROBES: dict[str, tuple[str, Callable[[Callable[[], object]], Callable[[], None]]]] = {
    "launch.torch-eager": ("", _eager),
    "launch.cuda-graph": (f" in a replayed graph of {KERNELS}", _graph),
}
