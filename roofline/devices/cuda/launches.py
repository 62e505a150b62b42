"""Measure launches on a GPU: the least duration of a kernel that does next to nothing, eager and in a graph.

No kernel ends sooner, however little it does. A kernel that reads before it writes waits for memory (1.12 us on an
H100, where a fill of one number took 0.93), so several are tried. A replayed graph starts its kernels one after the
other on the device.
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
    """Measure the least duration of a kernel with the profiler."""
    ceilings, notes = {}, {}
    for name in wanted:
        where, prepare = PROBES[name]
        durations = {method: times for method, call in _short_kernels() if (times := _durations(prepare(call)))}
        if durations:
            ceilings[name] = least(durations, where, conditions, date)
        else:
            notes[name] = "the profiler recorded no kernel"
    return Finding(ceilings, notes=notes)


def least(durations: Mapping[str, Sequence[float]], where: str, conditions: str, date: str) -> Ceiling:
    """Make the ceiling of kernels that do next to nothing. durations: by kind [s]; spread is of the least kind."""
    method = min(durations, key=lambda name: min(durations[name]))
    shortest, number = min(durations[method]), sum(map(len, durations.values()))
    return Ceiling(
        value=shortest,
        source=f"measured: least duration of a kernel{where} ({method}), {number} kernels, {conditions}",
        spread=round(1 - shortest / median(durations[method]), 4),
        date=date,
    )


def _short_kernels() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield kernels on one number: a label, and the call that enqueues the kernel."""
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
    """Replay a graph. held: holds the tensor whose address is in the graph, and must live as long."""
    for _ in range(REPLAYS):
        graph.replay()


def _durations(run: Callable[[], None]) -> list[float]:
    """Record the durations of the kernels that `run` enqueues [s]."""
    import torch

    # torch.profiler.profile runs this one, and warns of its cycles, of which there is none here.
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


#: For each launch floor: the place of its kernels, in words, and the function that prepares a call there.
PROBES: dict[str, tuple[str, Callable[[Callable[[], object]], Callable[[], None]]]] = {
    "launch.torch-eager": ("", _eager),
    "launch.cuda-graph": (f" in a replayed graph of {KERNELS}", _graph),
}
