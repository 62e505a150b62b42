"""From an imported XPlane trace of a GPU (JAX, TensorFlow with XLA) to the counted ops of a step and their times.

Work comes from the optimised programs in the trace. What a kernel belongs to is the instruction that its event names;
where kernels were launched by a command buffer (a CUDA graph made by XLA) events name the buffer, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.costs.counted import Counted
from roofline.errors import MeasurementError
from roofline.timing import executor
from roofline.timing import timed as timed_steps
from roofline.timing.executor import PICOSECOND
from roofline.timing.timed import OUTLIER, Timed
from roofline.traces import intervals
from roofline.traces.annotations import STEP
from roofline.traces.rows import Rows
from roofline.traces.xplane import command_buffers, marks
from roofline.traces.xplane.reader import XTrace
from roofline.xla import count as xla


@dataclass(frozen=True, slots=True)
class XlaStep:
    """A step of a trace. Times in seconds; see `gpu.GpuStep` and `gpu.Figures`.

    device: the plane of the device ("/device:GPU:0"); further_devices: how many others ran kernels. rocm: the runtime
    is HIP. buffers: kernels launched by command buffers, of `kernels`. linked: share of the kernels' time with an op.
    lasted: how long each kernel ran [ns], copies and fills left out.
    """

    counted: Counted
    timed: Timed
    span: float
    busy: float
    step_count: int
    linked: float
    device: str
    further_devices: int
    rocm: bool
    buffers: int
    kernels: int
    lasted: Rows
    warnings: tuple[str, ...]


def read(trace: XTrace) -> XlaStep:
    """The instructions that the device with the most kernel time ran, and their times in each step.

    A step is one execution of the program that takes most of the time. MeasurementError where no kernel is in the
    trace.
    """
    planes = sorted({line.plane for line in trace.lines if line.plane.startswith("/device:")})
    on = {plane: _events(trace, plane) for plane in planes}
    worked = {plane: rows for plane, rows in on.items() if len(rows)}
    if not worked:
        raise MeasurementError(
            "No device of the trace ran a kernel: record it with the device tracer on (it is by default), or import a "
            "trace of a GPU."
        )
    # Copies alone do not make the device of a program.
    device = max(
        worked,
        key=lambda plane: (
            (trace.hlo_op[worked[plane]] >= 0).any(),
            int((trace.end - trace.start)[worked[plane]].sum()),
        ),
    )
    rows = worked[device]
    windows, steps, warnings = _windows(trace, rows)
    of_other_devices = np.asarray(
        [line.plane in planes and line.plane != device for line in trace.lines] + [False], bool
    )
    marked = marks.with_marks(marks.without(trace, of_other_devices[trace.line]), windows, STEP)
    counted, owned = xla.count([marked], STEP)
    size = len(counted.ops)
    parts = executor.aligned(executor.time_steps(marked, owned[0], size, STEP, 0.0), size)
    walls = [float(part.walls[0]) for part in parts]
    timed = timed_steps.merge(parts, float(np.median(walls)))
    length = (trace.end - trace.start)[rows]
    return XlaStep(
        counted=counted,
        timed=timed,
        span=float(trace.end[rows].max() - trace.start[rows].min()) * PICOSECOND,
        busy=float(intervals.length(trace.start[rows], trace.end[rows])) * PICOSECOND,
        step_count=steps,
        linked=float(length[trace.hlo_op[rows] >= 0].sum() / length.sum()) if length.sum() else 0.0,
        device=device,
        further_devices=len(worked) - 1,
        rocm=any(name.startswith("hip") for name in trace.names),
        buffers=int(command_buffers.replayed(trace)[rows].sum()),
        kernels=len(rows),
        lasted=(length // 1000)[_computes(trace, rows)],
        warnings=(*trace.warnings, *warnings),
    )


def _events(trace: XTrace, plane: str) -> Rows:
    """The events of a device, in order of start."""
    mine = np.asarray([line.plane == plane and xla.is_stream(line) for line in trace.lines] + [False], bool)
    rows = np.flatnonzero(mine[trace.line] & (trace.end > trace.start))
    return rows[np.argsort(trace.start[rows], kind="stable")]


def _computes(trace: XTrace, rows: Rows) -> NDArray[np.bool_]:
    """Mark the events that are kernels, not copies or fills by the driver: bool[rows]."""
    driver = np.asarray([name.startswith(("Memcpy", "Memset")) for name in trace.names], bool)
    computes: NDArray[np.bool_] = ~driver[trace.name[rows]]
    return computes


def _windows(trace: XTrace, rows: Rows) -> tuple[list[tuple[int, int]], int, list[str]]:
    """(start, end) [ps] of each step to use, how many there are, and what was left out.

    A step ends with its last kernel, where the next begins; the first begins with its first kernel, and is left out
    where there are three or more: it holds what comes before a steady state.
    """
    mine = rows[trace.hlo_op[rows] >= 0]
    one_step = [(int(trace.start[rows].min()), int(trace.end[rows].max()))]
    if not len(mine):
        return one_step, 1, []
    programs, code = np.unique(trace.program[mine], return_inverse=True)
    time = np.bincount(code, weights=(trace.end - trace.start)[mine])
    main = mine[trace.program[mine] == programs[int(time.argmax())]]
    number = _executions(trace, main)
    count = int(number.max()) + 1
    if count < 2:
        return one_step, 1, []
    end = np.zeros(count, np.int64)
    np.maximum.at(end, number, trace.end[main])
    end = np.maximum.accumulate(end)
    start = np.append(trace.start[main[number == 0]].min(), end[:-1])
    windows = list(zip(start.tolist(), end.tolist(), strict=True))
    if count < 3:
        return windows, count, []
    walls = (end - start)[1:]
    near = walls <= OUTLIER * np.median(walls)
    selected = [window for window, is_near in zip(windows[1:], near.tolist(), strict=True) if is_near]
    slow = (
        f", and {count - 1 - len(selected)} that took far longer than the others" if len(selected) < count - 1 else ""
    )
    return selected, count, [f"the first of {count} executions left out{slow}"]


def _executions(trace: XTrace, rows: Rows) -> Rows:
    """int64[rows]: the execution of the program that each kernel is of, numbered from 0.

    By the run that the trace names; else by the shortest sequence of kernels that repeats itself from the first to the
    last; else all are one.
    """
    run = trace.run[rows]
    if (run > 0).all():
        first = np.unique(run, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first[1]))
        return order[first[2]]
    keys = np.stack([trace.hlo_op[rows].astype(np.int64), trace.name[rows].astype(np.int64)])
    code = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    times = int(np.bincount(code).min())  # no more executions than the rarest kernel has events
    for count in range(min(times, len(rows)), 1, -1):
        period, remainder = divmod(len(rows), count)
        if not remainder and np.array_equal(code[period:], code[:-period]):
            return np.arange(len(rows)) // period
    return np.zeros(len(rows), np.int64)
