"""From an imported Kineto trace of a CPU to the counted ops of a step and their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from roofline.costs.counted import Counted
from roofline.errors import MeasurementError
from roofline.importing.calls import Path, calls, marked
from roofline.importing.python_frames import with_python
from roofline.importing.rows import phases
from roofline.importing.selection import ALL, Selection, find
from roofline.pytorch import count, time_cpu
from roofline.timing.timed import LEAST, EventCost, Timed
from roofline.traces import intervals
from roofline.traces.annotations import STEP
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import ANNOTATION, KinetoTrace
from roofline.traces.kineto.steps import Steps

if TYPE_CHECKING:
    from roofline.importing.work.costs import Costs


@dataclass(frozen=True, slots=True)
class CpuStep:
    """A step of a CPU's trace. span, busy: of all ops of the trace [s]; steps: see `gpu.GpuStep`."""

    counted: Counted
    timed: Timed
    span: float
    busy: float
    steps: Steps
    shapes: bool


def read(trace: KinetoTrace, costs: Costs, selection: Selection = ALL) -> CpuStep:
    """The ops of the step nearest the median, and their times in all steps that are no outliers.

    selection: the steps to use. Of those chosen by number, and of fewer than LEAST, none is an outlier.
    The profiler's own cost per event is not known and stays in the times. MeasurementError where no op is in a step,
    or none has a time.
    """
    if not trace.ops.duration.any():
        raise MeasurementError("None of the trace's ops has a duration; record it again, and export it whole.")
    all_marks, asked = find(trace, selection)
    marks = all_marks.select(asked)
    walls = (marks.end - marks.start).astype(float)
    number = int(np.abs(walls - np.median(walls)).argmin())
    every = Path(np.ones(len(trace.ops), bool), np.zeros(len(trace.launches), bool))
    step = with_python(trace, calls(trace, every, [(int(marks.start[number]), int(marks.end[number]))]))
    nodes = marked(costs.nodes(trace, step.events, rows=step.ops), step)
    counted = count.count(nodes, costs)
    counted = replace(counted, phase=phases(counted))
    if not counted.ops:
        raise MeasurementError("No op that does work is in a step of the trace; record it again, with the step inside.")
    keep_all = selection.numbers is not None or len(marks) < LEAST
    timed = time_cpu.time_cpu(_with_marks(trace, marks), counted, STEP, EventCost(), keep_all)
    start, end = trace.ops.start, trace.ops.end
    return CpuStep(
        counted=counted,
        timed=timed,
        span=float(end.max() - start.min()) * 1e-9,
        busy=float(intervals.length(start, end)) * 1e-9,
        steps=all_marks,
        shapes=any(nodes.call(op.node).inputs for op in counted.ops),
    )


def _with_marks(trace: KinetoTrace, marks: Steps) -> KinetoTrace:
    """The trace with our marks around its steps and no other annotation: what `pytorch.time_cpu` reads."""
    size = len(marks)
    zeros = np.zeros(size, np.int64)
    events = Events(
        start=marks.start,
        end=marks.end,
        name=np.arange(len(trace.names), len(trace.names) + size).astype(np.int32),
        thread=zeros.astype(np.int32),
        kind=np.full(size, ANNOTATION, np.int8),
        order=zeros - 1,
        correlation=zeros - 1,
        external=zeros - 1,
        args=[b"{}"] * size,
    )
    names = (*trace.names, *(f"{STEP}#{number}" for number in range(size)))
    return replace(trace, annotations=events, names=names)
