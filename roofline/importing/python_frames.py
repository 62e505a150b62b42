"""Add to the calls of a step what calls of Python in its trace tell: the modules around them, and lines of the program.

A module that is called is a range like one that the user named. A line is that of the innermost function around a call
that is no framework's and not Python's own: a trace has the line where a function begins, and not the one it is at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.importing.calls import LINE_MARK, MODULE, StepCalls, merged
from roofline.traces import nesting
from roofline.traces.kineto import python_calls
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import ANNOTATION, KinetoTrace
from roofline.traces.rows import Rows


def has_modules(trace: KinetoTrace) -> bool:
    """Tell whether calls of modules are in a trace, as `with_stack` or `with_modules` records them."""
    return any(python_calls.module(trace.names[code]) for code in np.unique(trace.frames.name).tolist())


def with_python(trace: KinetoTrace, step: StepCalls) -> StepCalls:
    """Add modules and lines to a step; a trace without calls of Python adds none."""
    if not len(trace.frames) or not len(step):
        return step
    low, high = step.events.start.min(), step.events.end.max()
    near = (trace.frames.start <= high) & (trace.frames.end >= low) & np.isin(trace.frames.thread, step.events.thread)
    is_module = np.asarray([python_calls.module(name) is not None for name in trace.names], bool)
    modules = np.flatnonzero(near & is_module[trace.frames.name])
    places, frames = _lines(trace, np.flatnonzero(near), step)
    frame, event = trace.frames, step.events
    around = _ranges(frame.start[modules], frame.end[modules], frame.name[modules], frame.thread[modules])
    # A mark stands before its call, which would otherwise hold it.
    at = event.start[places] - 1
    name = np.append(frame.name, 0)[frames]
    marks = _ranges(at, at, name, event.thread[places])
    return merged([step, StepCalls(around, np.full(len(around), MODULE), modules),
                   StepCalls(marks, np.full(len(marks), LINE_MARK), frames)])  # fmt: skip


def _lines(trace: KinetoTrace, near: Rows, step: StepCalls) -> tuple[Rows, Rows]:
    """Find the calls of a step before which another function of the program begins to run on their thread.

    Returns their places, and for each the row of the function in `trace.frames`, -1 where none is running.
    """
    frames, events = trace.frames, step.events
    is_line = np.asarray([_is_of_program(name) for name in trace.names], bool)
    near = near[is_line[frames.name[near]]]
    on = (frames.thread[near], frames.start[near], frames.end[near], np.arange(len(near)))
    calls = np.flatnonzero(step.is_call)
    calls = calls[np.argsort(events.thread[calls], kind="stable")]
    function = np.append(near, -1)[nesting.innermost(*on, events.thread[calls], events.start[calls])]
    name, thread = np.append(frames.name, -1)[function], events.thread[calls]
    begins = np.append(True, (name[1:] != name[:-1]) | (thread[1:] != thread[:-1]))[: len(calls)]
    return calls[begins], function[begins]


def _is_of_program(name: str) -> bool:
    call = python_calls.parsed(name)
    return call is not None and not call.is_framework


def _ranges(start: Rows, end: Rows, name: NDArray[np.int32], thread: NDArray[np.int32]) -> Events:
    size = len(start)
    order = np.full(size, -1)
    kind = np.full(size, ANNOTATION, np.int8)
    return Events(start, end, name.astype(np.int32), thread.astype(np.int32), kind, order, order, order, [b"{}"] * size)
