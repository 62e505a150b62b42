"""Run steps on a GPU with two in flight, as in a program that does not wait; the device shows where each step ends.

A step may reuse the memory of the previous one's results (donation), and may return nothing at all: so the host waits
for an output that stays alive, else for the result of a program that the device runs after the step, its token.
Profiled steps all have a token. Its event lies on the device between two steps, whoever launched their kernels.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.recording.protocol import IN_FLIGHT
from roofline.recording.xspace.framework import Framework
from roofline.traces.annotations import SETTLING, STEP
from roofline.traces.xplane import marks, reader
from roofline.traces.xplane.reader import XTrace


def prepare(step: Step, framework: Framework) -> None:
    """Run two steps in a row, which shows whether a step reuses the previous one's results, and compile the token."""
    before = framework.end(step.run())
    outputs = step.run()
    framework.wait(before)
    framework.wait(outputs if framework.token_program is None else framework.token(outputs))


def steady(step: Step, steps: int, framework: Framework) -> list[float]:
    """Time `steps` steps back to back [s each]; a step ends at the moment at which the host knows of its end."""
    if not steps:
        return []
    waiting = [framework.end(step.run()) for _ in range(IN_FLIGHT)]
    framework.wait(waiting.pop(0))
    times: list[float] = []
    mark = time.perf_counter()
    for _ in range(steps):
        waiting.append(framework.end(step.run()))
        framework.wait(waiting.pop(0))
        now = time.perf_counter()
        times.append(now - mark)
        mark = now
    for ended in waiting:
        framework.wait(ended)
    return times


def profiled(step: Step, steps: int, framework: Framework, program: str) -> XTrace:
    """Trace `steps` steps, of which the first fills the queue and is not marked, unless it is the only one.

    program: the name of the program of tokens. A marked step begins where the previous one ends on the device; a single
    one begins on the host.
    """

    def run() -> None:
        waiting: list[object] = []
        for _ in range(steps):
            with framework.mark(SETTLING):
                waiting.append(framework.token(step.run()))
            if len(waiting) == IN_FLIGHT:
                framework.wait(waiting.pop(0))
        for token in waiting:
            framework.wait(token)

    return marked(reader.read(framework.profiled(run)), steps, program)


def marked(trace: XTrace, steps: int, program: str) -> XTrace:
    """Mark steps in a trace by `STEP` annotations that end with the tokens, and remove the tokens; see `profiled`.

    Raises MeasurementError where the trace does not show the ends of all steps.
    """
    numbers = [number for number, (name, _) in trace.modules.items() if name == program]
    on_device = np.asarray([line.plane.startswith("/device:") for line in trace.lines] + [False], bool)[trace.line]
    token = np.isin(trace.program, numbers) & (trace.hlo_op >= 0)
    ends = np.sort(trace.end[token & on_device if on_device.any() else token]).tolist()
    begun = np.asarray([name == SETTLING for name in trace.names] + [False], bool)[trace.name]
    if len(ends) != steps or not begun.any():
        raise MeasurementError(
            f"The profiler shows the ends of {len(ends)} of {steps} steps: see whether the driver lets you profile, "
            "or run again with fewer --steps."
        )
    ends = ends if steps > 1 else [int(trace.start[begun].min()), *ends]
    windows = list(pairwise(ends))
    return marks.with_marks(marks.without(trace, token | begun), windows, STEP)
