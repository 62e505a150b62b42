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


def time_cpu(trace: KinetoTrace, counted: Counted, prefix: str, event_cost: EventCost) -> Timed:
    """Op times on a CPU, less what the profiler's events cost."""
    steps = [step_events(trace, counted, low, high, prefix) for low, high in windows(trace, prefix)]
    walls = np.asarray([step.high - step.low for step in steps], np.float64) * 1e-9
    chosen = np.flatnonzero(walls <= OUTLIER * np.median(walls)) if len(walls) else np.zeros(0, np.int64)
    number = len(counted.ops)
    own_times, shares, starts, corrected, idle, causes, host, calls = [], [], [], [], [], [], [], []
    python, making = [], []
    within_ops: list[cpu_kernels.Calls] = []
    leaf_time = known_time = 0.0
    unseen = np.zeros(number, bool)
    unmatched: dict[str, float] = {}
    named = _named(trace.names)
    for index in chosen.tolist():
        step = steps[index]
        events, length = step.events, step.events.duration.astype(np.float64)
        matched = np.where(step.twin >= 0, np.append(counted.op_of, -1)[step.twin], -1)
        # The event of the op itself is the outermost of those that belong to it; all that lies in it is part of it.
        unit = nesting.outermost(step.parent, matched >= 0)
        op = np.where(unit >= 0, matched[unit], -1)
        root = unit == np.arange(len(unit))
        inside = (op >= 0) & ~root
        within_ops.append(cpu_kernels.calls_inside(op, events.name.astype(np.int64), step.parent, events.duration))
        unseen |= np.bincount(op[root], minlength=number) == 0
        within = event_cost.inner * np.bincount(op[inside], minlength=number)
        spans = np.bincount(op[root], weights=length[root], minlength=number) * 1e-9
        own_times.append(np.maximum(spans - within, 0.0))
        share = intervals.shares(events.start[root], events.end[root], op[root], number) * 1e-9
        shares.append(np.maximum(share - within, 0.0))
        first = np.full(number, events.end.max(initial=0), np.int64)
        np.minimum.at(first, op[root], events.start[root])
        starts.append(np.asarray((first - step.low) * 1e-9, np.float64))
        # Never below the ops' own time: of a step that is all events the calibrated cost can be too much.
        cost = float(event_cost.of(step.parent).sum())
        corrected.append(max(walls[index] - cost, shares[-1].sum(), 1e-9))
        idle.append(corrected[-1] - shares[-1].sum())
        cause = _causes(step, root | inside, named)
        causes.append(_host_time(step, root, cause, event_cost.inner, idle[-1]))
        gaps = host_time.gaps(events.start[root], events.end[root], op[root], number, step.low, step.high)
        host.append(_before_ops(step, gaps, cause, inside, event_cost))
        calls.append(_calls(step, gaps, cause))
        filled = made(trace.names, events.name, events.thread, step.parent, events.start, events.end)
        # What fills tensors to read the next batch is data input.
        reading = np.append(nesting.nearest(step.parent, cause == _READING) >= 0, False)
        filled = filled.only(~reading[filled.within])
        making.append((len(filled.start), _making(gaps, filled, event_cost)))
        outside = filled.within < 0
        filling = gaps.time(filled.start[outside], filled.end[outside])[:, 0] * 1e-9
        python.append(np.maximum(host[-1][:, 1] - filling, 0.0))
        joined, all_leaves = joined_time(step)
        leaf_time, known_time = leaf_time + all_leaves, known_time + joined
        unmatched |= unmatched_time(trace, step)
    return Timed(
        own=np.stack(own_times, axis=1) if own_times else np.zeros((number, 0)),
        overlap=(np.mean(own_times, axis=0) - np.mean(shares, axis=0)) if own_times else np.zeros(number),
        start=starts[0] if starts else np.zeros(number),
        walls=walls[chosen],
        corrected=np.asarray(corrected),
        idle=np.asarray(idle),
        host=np.mean(host, axis=0) if host else np.zeros((number, 2)),
        calls=np.mean(calls, axis=0) if calls else np.zeros(number),
        python=np.stack(python, axis=1) if python else np.zeros((number, 0)),
        made=tuple(np.mean(making, axis=0).tolist()) if making else None,
        causes=mean_causes(causes),
        joined=known_time / leaf_time if leaf_time else 0.0,  # nothing recorded is nothing joined
        events=int(np.mean([len(steps[i].events) for i in chosen])) if len(chosen) else 0,
        dropped=len(steps) - len(chosen),
        unmatched=unmatched,
        kernels=cpu_kernels.kernels(counted, trace.names, within_ops),
        kernel_names=trace.names,
        unseen=int(unseen.sum()),
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
