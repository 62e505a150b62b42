"""The T and P runs of the torch backend: plain steps timed, and a few steps under the profiler.

Steady protocol: steps are enqueued back to back, at most two in flight, with boundaries by device timestamps and one
synchronisation at the end. On a CPU a step has ended when its call returns, so the boundaries are the host's.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import torch

# What torch.profiler.profile runs inside; that class imports all of Inductor at its first start, which takes a second.
from torch.autograd.profiler import profile, record_function

from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.recording.garbage import collect_if_due
from roofline.recording.protocol import IN_FLIGHT, TWO_PROFILERS
from roofline.standard_error import quiet
from roofline.timing.timed import EventCost
from roofline.traces.annotations import SETTLING, STEP
from roofline.traces.kineto import reader


@contextmanager
def no_other() -> Iterator[None]:
    """While active, who starts a profiler is told that one is to come; two would end the process (SIGSEGV)."""

    def refuse(*_: object) -> NoReturn:
        raise MeasurementError(TWO_PROFILERS)

    begins = [(torch.profiler.profile, "start"), (profile, "__enter__")]
    before = [getattr(owner, name) for owner, name in begins]
    try:
        for owner, name in begins:
            setattr(owner, name, refuse)
        if torch._C._autograd._profiler_enabled():
            refuse()
        yield
    finally:
        for (owner, name), original in zip(begins, before, strict=True):
            setattr(owner, name, original)


def synchronize(device: str) -> None:
    """Wait until the device has done all that was enqueued."""
    if device == "cuda":
        torch.cuda.synchronize()


def timed(step: Step, device: str) -> float:
    """Time one step with a synchronisation before and after [s]."""
    if device != "cuda":
        return _timed_on_cpu(step)
    synchronize(device)
    begin = time.perf_counter()
    step.run()
    synchronize(device)
    return time.perf_counter() - begin


def _timed_on_cpu(step: Step) -> float:
    """Time one step [s]; that of a loop that runs anyway without what watches the loop, which nothing hides here."""
    begin = time.perf_counter()
    step.run()
    seconds = time.perf_counter() - begin
    return seconds if step.seconds is None else step.seconds()


def steady(step: Step, device: str, steps: int) -> list[float]:
    """`steps` steps by the steady protocol [s each]."""
    if device != "cuda":
        times = []
        for _ in range(steps):
            times.append(_timed_on_cpu(step))
            collect_if_due()
        return times
    if not steps:
        return []
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    step.run()  # fills the queue and does not count
    marks[0].record()
    for index in range(steps):
        step.run()
        marks[index + 1].record()
        # Mark i is the end of the step before step i: two are in flight when the next one is enqueued.
        marks[index + 2 - IN_FLIGHT].synchronize()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e-3 for a, b in pairwise(marks)]  # elapsed_time is in ms


def profiled(run: Callable[[], object], device: str, steps: int, warm: int = 0) -> profile:
    """`steps` steps under the profiler, each in an annotation, by the same protocol; shapes are not recorded.

    warm: steps before them that do not count (`settling`). `read` gives the trace.
    """
    marks = [torch.cuda.Event() for _ in range(steps)] if device == "cuda" else []
    profiler = profile(use_kineto=True, use_device="cuda" if device == "cuda" else None)
    with quiet():
        profiler.__enter__()
    try:
        for _ in range(warm):
            with record_function(SETTLING):
                run()
        for index in range(steps):
            with record_function(f"{STEP}#{index}"):
                run()
            if marks:
                marks[index].record()
                if index + 1 >= IN_FLIGHT:
                    marks[index + 1 - IN_FLIGHT].synchronize()
        synchronize(device)
    finally:
        with quiet():
            profiler.__exit__(None, None, None)
    return profiler


def read(profiler: profile) -> reader.KinetoTrace:
    """Read what a profiler recorded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profiled.json"
        profiler.export_chrome_trace(str(path))
        return reader.read(path)


def event_cost(calls: int = 500, rounds: int = 12) -> EventCost:
    """Measure what the profiler's events add: ops that do nothing, with and without profiler.

    A view is one event in no other one; a transposition is two, of which the second lies in the first and costs no more
    than one alone. The least of a few rounds of each, all in turns.
    """
    x = torch.zeros(1, 1)
    loops = [_loop(op, calls) for op in (lambda: x.view(1, 1), lambda: x.transpose(0, 1))]
    times: list[list[float]] = [[] for _ in range(2 * len(loops))]
    for _ in range(rounds):
        for number, loop in enumerate(loops):
            times[2 * number].append(loop())
            profiler = profile(use_kineto=True)
            with quiet():
                profiler.__enter__()
            times[2 * number + 1].append(loop())
            with quiet():
                profiler.__exit__(None, None, None)
    view, watched_view, transposition, watched_transposition = (min(seconds) / calls for seconds in times)
    outer = max(0.0, watched_view - view)
    return EventCost(outer, min(outer, max(0.0, watched_transposition - transposition - outer)))


def _loop(op: Callable[[], object], calls: int) -> Callable[[], float]:
    """So many calls of an op, which take [s] together; once before that."""

    def loop() -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            op()
        return time.perf_counter() - begin

    loop()
    return loop
