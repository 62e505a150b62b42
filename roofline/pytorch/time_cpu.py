"""The profiled run: from a Kineto trace and the counted calls to each op's time in each step.

On a CPU an op's time is that of its event (what lies inside it is part of it); on a GPU it is the union of the kernels
launched inside it. The profiler's own cost is subtracted per event, calibrated on ops that do nothing: a uniform
scaling would move time from small ops to large ones. An event inside another one costs less than one outside of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.costs.counted import Counted
from roofline.pytorch import cpu_kernels
from roofline.pytorch.made_of_python import Made, made
from roofline.timing import host as host_time
from roofline.timing.timed import (
    GUARDS,
    HOST_DISPATCH,
    INPUT,
    OUTLIER,
    PYTHON,
    RUNTIME,
    WRAPPER,
    EventCost,
    Timed,
    mean_causes,
)
from roofline.traces import intervals, nesting
from roofline.traces.alignment import align_threads
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.reader import KinetoTrace

#: What the events are called that PyTorch records around compiled code and around reading the next batch, the cause
#: that their own time is idle for, and whether events without a name of these that lie in one are part of it. A
#: compiled region is also around what a graph break left to Python, whose ops are dispatched one by one as ever.
NAMED = (
    ("TorchDynamo Cache Lookup", GUARDS, True),
    ("## Call CompiledFxGraph ", WRAPPER, True),
    ("AOTDispatcher Runtime Wrapper ", RUNTIME, True),
    ("CompiledFunction", RUNTIME, True),  # CompiledFunctionBackward as well
    ("Pregraph bytecode", RUNTIME, False),
    ("Torch-Compiled Region: ", RUNTIME, False),
    ("enumerate(DataLoader)#", INPUT, True),
    ("enumerate(DataPipe)#", INPUT, True),
)
#: Idle times of events in NAMED, in the order in which they get an instant that several threads share; the last one is
#: no dispatch at all.
_CAUSES = (GUARDS, WRAPPER, RUNTIME, INPUT)
_READING = len(_CAUSES)


@dataclass(frozen=True, slots=True)
class StepEvents:
    """The calls of one step, in order of start, and what they are.

    source: row in the trace's ops, -1 for an annotation. parent: within the step. twin: the counted call, or -1.
    """

    low: int
    high: int
    events: Events
    source: NDArray[np.int64]
    parent: NDArray[np.int64]
    twin: NDArray[np.int64]


def windows(trace: KinetoTrace, prefix: str) -> list[tuple[int, int]]:
    """(start, end) [ns] of the annotations named prefix#0, prefix#1, ..., in order."""
    wanted = [code for code, name in enumerate(trace.names) if name.startswith(prefix + "#")]
    rows = np.flatnonzero(np.isin(trace.annotations.name, wanted))
    return list(zip(trace.annotations.start[rows].tolist(), trace.annotations.end[rows].tolist(), strict=True))


def step_events(trace: KinetoTrace, counted: Counted, low: int, high: int, skip: str) -> StepEvents:
    """The calls (ops and annotations, all threads) that began in a window, matched with the counted ones."""
    ours = [code for code, name in enumerate(trace.names) if name.startswith(skip)]
    marks = trace.annotations
    ops = np.flatnonzero((trace.ops.start >= low) & (trace.ops.start < high))
    named = np.flatnonzero((marks.start >= low) & (marks.start < high) & ~np.isin(marks.name, ours))
    events, source = _merge(trace.ops.select(ops), marks.select(named), ops)
    codes = {name: code for code, name in enumerate(trace.names)}
    counted_names = np.asarray([codes.get(name, -2) for name in counted.names], np.int64)
    twin = align_threads(events.name.astype(np.int64), events.thread, counted_names, counted.thread)
    parent = nesting.parents(events.thread, events.start, events.end, events.order)
    return StepEvents(low, high, events, source, parent, twin)


def _merge(ops: Events, marks: Events, rows: NDArray[np.int64]) -> tuple[Events, NDArray[np.int64]]:
    columns = {
        name: np.concatenate([getattr(ops, name), getattr(marks, name)])
        for name in ("start", "end", "name", "thread", "kind", "order", "correlation", "external")
    }
    order = np.lexsort((columns["order"], columns["start"]))
    source = np.concatenate([rows, np.full(len(marks), -1, np.int64)])
    return Events(**columns, args=[*ops.args, *marks.args]).select(order), source[order]


def joined_time(step: StepEvents) -> tuple[float, float]:
    """(time of the leaf events that have a counted twin, time of all leaf events), as unions [ns]."""
    leaf = nesting.children_count(step.parent) == 0
    has_twin = leaf & (step.twin >= 0)
    start, end = step.events.start, step.events.end
    return float(intervals.length(start[has_twin], end[has_twin])), float(intervals.length(start[leaf], end[leaf]))


def unmatched_time(trace: KinetoTrace, step: StepEvents) -> dict[str, float]:
    """Time of the leaf events without a twin, by name [s]."""
    lost = (nesting.children_count(step.parent) == 0) & (step.twin < 0)
    sums = np.bincount(step.events.name[lost], weights=step.events.duration[lost] * 1e-9, minlength=len(trace.names))
    return {trace.names[code]: float(sums[code]) for code in np.unique(step.events.name[lost])}


def time_cpu(trace: KinetoTrace, counted: Counted, prefix: str, event_cost: EventCost, keep_all: bool = False) -> Timed:
    """Time ops on a CPU, less what the profiler's events cost. keep_all: outlying steps, too."""
    steps = [step_events(trace, counted, low, high, prefix) for low, high in windows(trace, prefix)]
    walls = np.asarray([step.high - step.low for step in steps], np.float64) * 1e-9
    chosen = np.arange(len(walls))
    if len(walls) and not keep_all:
        chosen = np.flatnonzero(walls <= OUTLIER * np.median(walls))
    kept, named = [steps[index] for index in chosen.tolist()], _named(trace.names)
    timed = [_time_step(step, counted, trace.names, named, event_cost) for step in kept]
    unmatched: dict[str, float] = {}
    for step in kept:
        unmatched |= unmatched_time(trace, step)
    joined, leaves = (sum(times) for times in zip((0.0, 0.0), *map(joined_time, kept), strict=True))
    number = len(counted.ops)
    return Timed(
        own=_columns([step.own for step in timed], number),
        overlap=_mean([step.own for step in timed], number) - _mean([step.share for step in timed], number),
        start=timed[0].start if timed else np.zeros(number),
        walls=walls[chosen],
        corrected=np.asarray([step.corrected for step in timed]),
        idle=np.asarray([step.idle for step in timed]),
        host=_mean([step.host for step in timed], number, 2),
        calls=_mean([step.calls for step in timed], number),
        python=_columns([step.python for step in timed], number),
        made=tuple(np.mean([step.made for step in timed], axis=0).tolist()) if timed else None,
        causes=mean_causes([step.causes for step in timed]),
        joined=joined / leaves if leaves else 0.0,  # nothing recorded is nothing joined
        events=int(np.mean([len(step.events) for step in kept])) if kept else 0,
        dropped=len(steps) - len(kept),
        unmatched=unmatched,
        kernels=cpu_kernels.kernels(counted, trace.names, [step.calls_inside for step in timed]),
        kernel_names=trace.names,
        unseen=int(np.any([step.unseen for step in timed], axis=0).sum()),
    )


def _columns(values: Sequence[NDArray[np.float64]], number: int) -> NDArray[np.float64]:
    """Put the values of each step side by side: (number, steps)."""
    return np.stack(values, axis=1) if values else np.zeros((number, 0))


def _mean(values: Sequence[NDArray[np.float64]], *shape: int) -> NDArray[np.float64]:
    return np.mean(values, axis=0) if values else np.zeros(shape)


@dataclass(frozen=True, slots=True, eq=False)
class _StepTime:
    """Hold the times of one step of n ops [s], as `Timed` has them of all.

    own, share, start, calls, python: (n,). host: (n, 2). unseen: bool[n], of which it has no event. calls_inside: the
    calls inside its ops.
    """

    own: NDArray[np.float64]
    share: NDArray[np.float64]
    start: NDArray[np.float64]
    corrected: float
    idle: float
    causes: dict[str, float]
    host: NDArray[np.float64]
    calls: NDArray[np.float64]
    python: NDArray[np.float64]
    made: tuple[int, float]
    unseen: NDArray[np.bool_]
    calls_inside: cpu_kernels.Calls


def _time_step(
    step: StepEvents, counted: Counted, names: Sequence[str], named: NDArray[np.int64], event_cost: EventCost
) -> _StepTime:
    """Time the ops of a step, and what lies between them. named: the row in NAMED of each of `names`, or -1."""
    events, number = step.events, len(counted.ops)
    matched = np.append(counted.op_of, -1)[step.twin]
    # The event of the op itself is the outermost of those that belong to it; all that lies in it is part of it.
    unit = nesting.outermost(step.parent, matched >= 0)
    op = np.where(unit >= 0, matched[unit], -1)
    root = unit == np.arange(len(unit))
    inside = (op >= 0) & ~root
    spans = events.start[root], events.end[root], op[root], number
    within = event_cost.inner * np.bincount(op[inside], minlength=number)
    length = np.bincount(op[root], weights=events.duration[root].astype(np.float64), minlength=number) * 1e-9
    share = np.maximum(intervals.shares(*spans) * 1e-9 - within, 0.0)
    first = np.full(number, events.end.max(initial=0), np.int64)
    np.minimum.at(first, op[root], events.start[root])
    # Never below the ops' own time: of a step that is all events the calibrated cost can be too much.
    cost = float(event_cost.of(step.parent).sum())
    corrected = max((step.high - step.low) * 1e-9 - cost, float(share.sum()), 1e-9)
    idle = corrected - float(share.sum())
    cause = _causes(step, root | inside, named)
    gaps = host_time.gaps(*spans, step.low, step.high)
    host, filled = _before_ops(step, gaps, cause, inside, event_cost), _filled(step, names, cause)
    return _StepTime(
        own=np.maximum(length - within, 0.0),
        share=share,
        start=np.asarray((first - step.low) * 1e-9, np.float64),
        corrected=corrected,
        idle=idle,
        causes=_host_time(step, root, cause, event_cost.inner, idle),
        host=host,
        calls=_calls(step, gaps, cause),
        python=_without_filling(host[:, 1], gaps, filled),
        made=(len(filled.start), _making(gaps, filled, event_cost)),
        unseen=np.bincount(op[root], minlength=number) == 0,
        calls_inside=cpu_kernels.calls_inside(op, events.name.astype(np.int64), step.parent, events.duration),
    )


def _named(names: Sequence[str]) -> NDArray[np.int64]:
    """For each name its row in NAMED, -1 for none."""
    rows = ((row for row, (prefix, _, _) in enumerate(NAMED) if name.startswith(prefix)) for name in names)
    return np.asarray([next(found, -1) for found in rows], np.int64)


def _host_time(
    step: StepEvents,
    root: NDArray[np.bool_],
    cause: NDArray[np.int64],
    inner_cost: float,
    idle: float,
) -> dict[str, float]:
    """Idle time of a CPU step: inside the framework (views, autograd, wrappers), and outside every event (Python).

    Of compiled code the guards, the wrapper around its kernels and the runtime around that are told apart, and reading
    the next batch from all of it. cause: of each event (`_causes`).
    """
    events = step.events
    busy_start, busy_end = events.start[root], events.end[root]
    counted = intervals.length(busy_start, busy_end) * 1e-9
    covered = (
        intervals.length(np.clip(events.start, step.low, step.high), np.clip(events.end, step.low, step.high)) * 1e-9
    )
    # What an event costs falls into its parent: an op (subtracted there), the framework, or Python for the topmost.
    charged = cause[step.parent[step.parent >= 0]]
    times: dict[str, float] = {}
    if (cause > 0).any():
        start, end, owner = _own_pieces(step)
        reading, compiled = (cause == _READING).any(), ((cause > 0) & (cause < _READING)).any()
        for number, name in enumerate(_CAUSES, 1):
            if not (reading if number == _READING else compiled):
                continue
            mine = cause[owner] == number
            # At an instant that several threads share an op comes first, then the causes in this order.
            busy_start, busy_end = np.append(busy_start, start[mine]), np.append(busy_end, end[mine])
            before, counted = counted, intervals.length(busy_start, busy_end) * 1e-9
            times[name] = max(0.0, counted - before - inner_cost * int((charged == number).sum()))
    times = {HOST_DISPATCH: max(0.0, covered - counted - inner_cost * int((charged == 0).sum()))} | times
    framework = sum(times.values())
    if framework > idle:
        times = {name: time * (idle / framework) for name, time in times.items()}
    return times | {PYTHON: max(0.0, idle - framework)}


def _before_ops(
    step: StepEvents,
    gaps: host_time.Gaps,
    cause: NDArray[np.int64],
    inside: NDArray[np.bool_],
    event_cost: EventCost,
) -> NDArray[np.float64]:
    """Idle time before each op, in the framework and outside of it, less what the events in it cost [s].

    Without what reads the next batch: that is no dispatch of the op that follows.
    """
    events, around, reading = step.events, cause >= 0, cause == _READING
    idle = gaps.time(events.start[around], events.end[around]) * 1e-9
    idle[:, 0] -= gaps.time(events.start[reading], events.end[reading])[:, 0] * 1e-9
    cost = np.asarray([event_cost.inner, event_cost.outer])
    counted = ~inside & ~reading
    return np.maximum(idle - cost * gaps.events(events.start[counted], step.parent[counted] >= 0), 0.0)


def _filled(step: StepEvents, names: Sequence[str], cause: NDArray[np.int64]) -> Made:
    """Find where Python fills tensors with numbers, without what it fills to read the next batch: data input."""
    events = step.events
    filled = made(names, events.name, events.thread, step.parent, events.start, events.end)
    reading = np.append(nesting.nearest(step.parent, cause == _READING) >= 0, False)
    return filled.only(~reading[filled.within])


def _without_filling(python: NDArray[np.float64], gaps: host_time.Gaps, filled: Made) -> NDArray[np.float64]:
    """Take the filling of tensors outside of every event off Python's time before each op [s]."""
    outside = filled.within < 0
    return np.maximum(python - gaps.time(filled.start[outside], filled.end[outside])[:, 0] * 1e-9, 0.0)


def _making(gaps: host_time.Gaps, filled: Made, event_cost: EventCost) -> float:
    """Measure how long Python fills tensors before each op, less what the profiler's events cost there [s]."""
    seconds = float(gaps.time(filled.start, filled.end)[:, 0].sum()) * 1e-9
    return max(0.0, seconds - float(event_cost.of(filled.within).sum()))


def _calls(step: StepEvents, gaps: host_time.Gaps, cause: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count the calls of the framework that run no op before each op: views, and whatever else has no event in it."""
    leaf = (nesting.children_count(step.parent) == 0) & (cause >= 0) & (cause != _READING) & (step.source >= 0)
    return gaps.events(step.events.start[leaf], np.ones(int(leaf.sum()), bool))[:, 0]


def _causes(step: StepEvents, op: NDArray[np.bool_], named: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each event whose idle time its own time is: 0 dispatch, else by its place in `_CAUSES`; -1 an op's."""
    numbers = {cause: number for number, cause in enumerate(_CAUSES, 1)}
    number = np.asarray([*(numbers[cause] for _, cause, _ in NAMED), 0])
    counts_whole = np.asarray([*(is_whole for _, _, is_whole in NAMED), False])
    row = named[step.events.name] if len(named) else np.zeros(0, np.int64)
    is_named = (row >= 0) & ~op
    nearest = nesting.nearest(step.parent, is_named)
    above = np.append(row, -1)[nearest]
    part = is_named | counts_whole[above]
    return np.where(op, -1, np.where(part, number[above], 0))


def _own_pieces(step: StepEvents) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Start, end and event of the pieces of time in which an event is the innermost one of its thread."""
    events = step.events
    thread, time = np.tile(events.thread, 2), np.concatenate([events.start, events.end])
    thread, time = np.unique(np.stack([thread, np.clip(time, step.low, step.high)]), axis=1)
    of_one_thread = thread[1:] == thread[:-1]
    thread, start, end = thread[:-1][of_one_thread], time[:-1][of_one_thread], time[1:][of_one_thread]
    owner = nesting.innermost(events.thread, events.start, events.end, events.order, thread, start, end)
    held = owner >= 0
    return start[held], end[held], owner[held]
