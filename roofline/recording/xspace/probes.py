"""Measure the limits of an executor: its shortest op, its rate of each function, and its profiler's cost per event."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from statistics import median

from roofline.core.device import Ceiling
from roofline.costs.counted import Counted
from roofline.recording.xspace.framework import Framework
from roofline.timing.executor import PICOSECOND
from roofline.traces.annotations import STEP
from roofline.traces.xplane import reader

#: Runs of the program of ops that do nothing, which measure the cost of an op and of an event.
TRIVIAL_RUNS = 20
#: Numbers that a function is evaluated on: enough that starting the op is little, few enough to stay in a cache. Three
#: sizes, as frameworks give small and large ones to other code and to other numbers of threads.
FUNCTION_ELEMENTS = (1 << 14, 1 << 17, 1 << 19)
FUNCTION_RUNS = 25
#: On a GPU: enough numbers for all its threads, each evaluated so often that neither launch nor memory is the limit.
#: An H100 evaluates 16 functions per clock and multiprocessor, 4e12/s: 2^20 numbers 64 times take 17 us, where a launch
#: takes 2 and moving 8 MiB 3.
GPU_ELEMENTS, GPU_TIMES = (1 << 20,), 64


def launch(framework: Framework) -> tuple[dict[str, Ceiling], float]:
    """Measure the launch floor of the executor, and the time that a profiler event adds around it [s].

    Both from programs whose ops do nothing. The least event is the floor, and its spread is that of its kind.
    """
    by_kind: dict[str, list[float]] = {}
    costs: list[float] = []
    for kind, run in framework.trivial().items():
        durations, cost = _least(framework, run)
        costs.append(cost)
        positive = [duration for duration in durations if duration > 0]
        if positive:
            by_kind[kind] = positive
    if not by_kind:
        return {}, min(costs)
    kind = min(by_kind, key=lambda name: min(by_kind[name]))
    source = f"measured: least event of {kind}, {len(by_kind[kind])} events"
    return {f"launch.{framework.mechanism}": _ceiling(by_kind[kind], min(by_kind[kind]), source)}, min(costs)


def _least(framework: Framework, run: Callable[[], object]) -> tuple[list[float], float]:
    """Measure the time of each event of a program whose ops do nothing [s], and the profiler's cost per event [s].

    The program runs with and without the profiler, in turns: the cost is the difference of the least times per event.
    """
    framework.wait(run())
    plain: list[float] = []
    watched: list[float] = []
    durations: list[float] = []
    events = 1

    def loop(times: list[float]) -> None:
        begin = time.perf_counter()
        for _ in range(TRIVIAL_RUNS):
            framework.wait(run())
        times.append(time.perf_counter() - begin)

    for _ in range(3):
        loop(plain)
        trace, times = _profiled(framework, lambda: loop(watched))
        durations += times
        events = max(events, len(trace.start))
    return durations, max(0.0, (min(watched) - min(plain)) / events)


def functions(framework: Framework, counted: Counted, device: str) -> dict[str, Ceiling]:
    """Measure the rates of the functions that the step evaluates, in the framework's own code; device: "cpu" or a GPU.

    Each library computes a function in its own way and at its own rate: the device's ceiling is the best rate of any.
    """
    names = sorted({name for op in counted.ops for name in op.costed.cost.functions or ()})
    ceilings: dict[str, Ceiling] = {}
    elements, times = (FUNCTION_ELEMENTS, 1) if device == "cpu" else (GPU_ELEMENTS, GPU_TIMES)
    for name in names:
        rates = [rate for size in elements for rate in _rates(framework, name, size, times)]
        if rates:
            sizes = ", ".join(map(str, elements)) + (f" numbers {times} times" if times > 1 else " numbers")
            source = f"measured: {framework.mechanism} on {sizes}, best of {len(rates)}"
            ceilings[f"function.{name}"] = _ceiling(rates, max(rates), source)
    return ceilings


def _rates(framework: Framework, name: str, elements: int, times: int) -> list[float]:
    """Measure evaluations per second of a function in each of a few runs; empty where the framework lacks it."""
    run = framework.function(name, elements, times)
    if run is None:
        return []
    framework.wait(run())

    def runs() -> None:
        for _ in range(FUNCTION_RUNS):
            framework.wait(run())

    _, durations = _profiled(framework, runs)
    if times > 1 and len(durations) != FUNCTION_RUNS:
        return []  # several kernels: none of them did all the evaluations
    # The op that takes the time; a framework may also copy its result.
    longest = [duration for duration in sorted(durations, reverse=True)[:FUNCTION_RUNS] if duration > 0]
    return [elements * times / duration for duration in longest] if len(longest) == FUNCTION_RUNS else []


def _profiled(framework: Framework, run: Callable[[], None]) -> tuple[reader.XTrace, list[float]]:
    """Trace `run`; return the trace and the time of each event of the executor [s], of known and unknown ops."""

    def marked() -> None:
        with framework.mark(f"{STEP}#0"):
            run()

    trace = reader.read(framework.profiled(marked))
    owned = framework.read([trace], STEP).owned[0]
    ran = (owned.op >= 0) | owned.lost
    return trace, ((owned.end - owned.start)[ran] * PICOSECOND).tolist()


def _ceiling(values: list[float], best: float, source: str) -> Ceiling:
    spread = abs(1 - median(values) / best) if median(values) < best else 1 - best / median(values)
    return Ceiling(value=best, source=source, spread=round(spread, 4), date=date.today().isoformat())
