"""The profiled run on a GPU: each op's time is the union of the device events launched inside it.

Device events without an op stay in the step as ops of unknown work, named after their kernel: busy time is busy time,
whoever asked for it. Kernels that a graph replayed get their ops back from a trace of the same program without graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.core.executor import CUDA_GRAPH, GRAPHS, IN_GRAPHS
from roofline.costs.counted import Counted
from roofline.errors import MeasurementError
from roofline.pytorch.time_cpu import joined_time, step_events, unmatched_time
from roofline.timing import idle
from roofline.timing.timed import OUTLIER, Timed
from roofline.traces import intervals
from roofline.traces.kineto import replays, steps
from roofline.traces.kineto.links import Links, link
from roofline.traces.kineto.reader import KERNEL, KinetoTrace


@dataclass(frozen=True)
class TimedCuda(Timed):
    """Times of a GPU's steps, and what of them was launched by replaying graphs. Figures are means per kept step.

    graph_launches: replays; graph_kernels: that they launched. replayed: (n,) for each row how many of its device
    events a replay launched, copies among them. unattributed: replayed device events that stayed without an op.
    by_order: the profiler wrote no ids of graph nodes, as that of torch 2.11 does not: ops of replays rest on order,
    name, grid and block.
    """

    graph_launches: int = 0
    graph_kernels: int = 0
    replayed: NDArray[np.int64] | None = None
    unattributed: int = 0
    by_order: bool = False


def mechanism(timed: Timed) -> str:
    """Tell what launched the kernels, as `Profiled.mechanism` names it."""
    return CUDA_GRAPH if isinstance(timed, TimedCuda) and timed.graph_launches else "eager"


def conditions(timed: Timed | None) -> dict[str, float]:
    """Count the graphs that a step launches, and the kernels that these launch; nothing of one that launches none."""
    if not isinstance(timed, TimedCuda) or not timed.graph_launches:
        return {}
    return {GRAPHS: float(timed.graph_launches), IN_GRAPHS: float(timed.graph_kernels)}


def flags(timed: Timed, captured: bool = False) -> tuple[str, ...]:
    """List what a reader must know of kernels that graphs replayed. captured: captures of others were given."""
    facts = []
    if isinstance(timed, TimedCuda) and timed.unattributed:
        facts.append(f"replays-{'uncaptured' if captured else 'unattributed'}: {timed.unattributed} kernels per step")
    if isinstance(timed, TimedCuda) and timed.by_order:
        facts.append("replays-by-order")
    return tuple(facts)


def time_cuda(
    trace: KinetoTrace,
    counted: Counted,
    prefix: str | None,
    reference: KinetoTrace | None = None,
) -> TimedCuda:
    """Time ops on a GPU, per kept step; rows beyond the counted ops are `Timed.extra`, kernels without an op.

    prefix: of the annotations that mark the steps; None: whatever the trace marks, else all of it is one step.
    reference: a trace of the same steps, marked alike, without graphs: tells the op of each kernel that a graph of
    `trace` replays (see `roofline.traces.kineto.replays`), and what share of the events was joined to counted ops.
    Where `trace` replays no graph it is not looked at.
    """
    marks = steps.find(trace, None if prefix is None else f"{prefix}#")
    if not len(trace.device):
        raise MeasurementError(
            "the profiler recorded no kernel and no copy; try again, or see whether the driver lets you profile."
        )
    links = link(trace)
    kept = _kept_steps(trace, links, marks)
    twin, joined, events, unmatched = _twins(trace, counted, marks, kept.numbers)
    op = _op_around(twin, links.op, counted)
    by_order = False
    if reference is not None and (links.graph & np.isin(kept.step, kept.numbers)).any():
        op, joined, unmatched, by_order = _replayed(trace, links, kept.step, op, reference, counted, prefix)
    names, owner = _owners(trace, op, len(counted.ops))
    timed = time_steps(trace, links, kept, owner, len(counted.ops) + len(names), op >= 0)
    return replace(timed, joined=joined, events=events, unmatched=unmatched, extra=names, by_order=by_order)


class Kept(NamedTuple):
    """Holds the steps that are kept: their numbers, where each begins and ends [ns], and how many outliers are not.

    step: of each device event the number of the step that it is of, kept or not, or -1.
    """

    step: NDArray[np.int64]
    numbers: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    dropped: int


def time_steps(
    trace: KinetoTrace, links: Links, kept: Kept, owner: NDArray[np.int64], total: int, linked: NDArray[np.bool_]
) -> TimedCuda:
    """Time what `total` owners run in each step. owner: of each device event. linked: events whose op is known.

    A window holds what ran in it, of whichever step: steps that overlap on several streams lend each other as much as
    they borrow, and busy and idle time add up to the window. An owner that does not run in the first step starts with
    it. joined: share of the summed time of device events that is linked; events: device events per step.
    """
    device, number = trace.device, len(kept.numbers)
    own, shares = np.zeros((total, number)), np.zeros((total, number))
    for column, (low, high) in enumerate(zip(kept.low.tolist(), kept.high.tolist(), strict=True)):
        rows = np.flatnonzero((device.start < high) & (device.end > low))
        spans = np.clip(device.start[rows], low, high), np.clip(device.end[rows], low, high), owner[rows], total
        own[:, column] = intervals.own(*spans) * 1e-9
        shares[:, column] = intervals.shares(*spans) * 1e-9
    start = np.full(total, np.iinfo(np.int64).max)
    first = np.flatnonzero(kept.step == kept.numbers[0])
    np.minimum.at(start, owner[first], device.start[first])
    walls = (kept.high - kept.low).astype(np.float64) * 1e-9
    gaps = idle.causes(trace, links, kept.low, kept.high)
    in_steps = np.isin(kept.step, kept.numbers)
    by_graph = links.graph & in_steps
    kernel = device.kind == KERNEL  # copies and fills start without the launch whose floor is known
    time = device.duration[in_steps]

    def per_step(rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.rint(np.bincount(owner[rows], minlength=total) / number).astype(np.int64)

    return TimedCuda(
        own=own,
        overlap=(own - shares).mean(axis=1),
        start=np.where(start < np.iinfo(np.int64).max, start - kept.low[0], 0) * 1e-9,
        walls=walls,
        corrected=walls,
        idle=np.bincount(gaps.window, weights=(gaps.end - gaps.start) * 1e-9, minlength=number).astype(float),
        host=gaps.before_kernels(owner, total, number),
        waits=gaps.by_op(owner, number),
        causes={name: seconds / number for name, seconds in gaps.seconds().items() if seconds > 0},
        joined=float(time[linked[in_steps]].sum() / time.sum()) if time.sum() else 0.0,
        events=round(int(in_steps.sum()) / number),
        dropped=kept.dropped,
        unmatched={},
        kernels=_kernel_times(trace, owner, in_steps, total, number),
        kernel_names=trace.names,
        launches=per_step(in_steps & kernel),
        graph_launches=round(len(np.unique(links.launch[by_graph])) / number),
        graph_kernels=round(int((by_graph & kernel).sum()) / number),
        replayed=per_step(by_graph),
        unattributed=round(int((by_graph & ~linked).sum()) / number),
    )


def _kept_steps(trace: KinetoTrace, links: Links, marks: steps.Steps) -> Kept:
    step = steps.assign(marks, trace, links)
    low, high = steps.device_windows(marks, trace, step)
    walls = high - low
    # The first step's window begins on the host and holds the ramp-up of the queue.
    candidates = np.arange(1 if len(marks) > 1 else 0, len(marks))
    candidates = candidates[walls[candidates] > 0]
    if not len(candidates):
        raise MeasurementError("no profiled step took any time on the device; record the trace again.")
    numbers = candidates[walls[candidates] <= OUTLIER * np.median(walls[candidates])]
    return Kept(step, numbers, low[numbers], high[numbers], len(candidates) - len(numbers))


def _op_around(twin: NDArray[np.int64], calls: NDArray[np.int64], counted: Counted) -> NDArray[np.int64]:
    """Return the counted op that calls of a trace are or lie in, or -1. twin: of each call, the counted one or -1."""
    inner: NDArray[np.int64] = np.append(twin, -1)[calls]
    return np.append(counted.op_of, -1)[inner]


def _replayed(
    trace: KinetoTrace,
    links: Links,
    step: NDArray[np.int64],
    op: NDArray[np.int64],
    reference: KinetoTrace,
    counted: Counted,
    prefix: str | None,
) -> tuple[NDArray[np.int64], float, dict[str, float], bool]:
    """The counted op of each device event, by order in the steps that replay graphs; joined share, what was unmatched;
    whether there was nothing but order to tell by.

    The joined share is the reference's: of a replayed step the host records next to no op.
    """
    marks = steps.find(reference, None if prefix is None else f"{prefix}#")
    reference_links = link(reference)
    placed = steps.assign(marks, reference, reference_links)
    number = _typical(reference, placed, len(marks))
    twin, joined, _, unmatched = _twins(reference, counted, marks, np.asarray([number]))
    rows = np.flatnonzero(placed == number)
    wanted = np.flatnonzero(np.isin(step, step[links.graph]) & (step >= 0))
    replayed, plain = replays.columns((trace, links, step, wanted), (reference, reference_links, placed, rows))
    op = op.copy()
    op[wanted] = replays.owners(replayed, plain, _op_around(twin, reference_links.op[rows], counted), op[wanted])
    return op, joined, unmatched, not (replayed.node >= 0).any()


def _typical(trace: KinetoTrace, step: NDArray[np.int64], number: int) -> int:
    """The step whose sequence of device events most steps share; of several the last: the first ones warm up."""
    device = trace.device
    sequences = [
        (device.name[rows].tobytes(), device.thread[rows].tobytes())
        for rows in (np.flatnonzero(step == index) for index in range(number))
    ]
    return max(range(number), key=lambda index: (sequences.count(sequences[index]), index))


def _twins(
    trace: KinetoTrace, counted: Counted, marks: steps.Steps, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], float, int, dict[str, float]]:
    """The counted twin of each op of the trace (-1: none), the joined share, events per step, what was not matched."""
    twin = np.full(len(trace.ops), -1, np.int64)
    joined = leaves = 0.0
    number = 0
    unmatched: dict[str, float] = {}
    for index in range(len(marks)):
        events = step_events(trace, counted, int(marks.start[index]), int(marks.end[index]), marks.source or steps.LIVE)
        rows = events.source >= 0
        twin[events.source[rows]] = events.twin[rows]
        if index in chosen:
            matched, all_leaves = joined_time(events)
            joined, leaves, number = joined + matched, leaves + all_leaves, number + len(events.events)
            unmatched |= unmatched_time(trace, events)
    return twin, joined / leaves if leaves else 0.0, number // len(chosen), unmatched


def _owners(trace: KinetoTrace, op: NDArray[np.int64], ops: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Numbers for the device events without an op, one per kernel name, after those of the ops."""
    lost = op < 0
    codes, place = np.unique(trace.device.name[lost], return_inverse=True)
    owner = op.copy()
    owner[lost] = ops + place
    return tuple(trace.names[code] for code in codes), owner


def _kernel_times(
    trace: KinetoTrace, owner: NDArray[np.int64], counted: NDArray[np.bool_], total: int, number_of_steps: int
) -> list[tuple[tuple[int, int], ...]]:
    """(kernel name, mean time per step [ns]) of each owner, longest first."""
    rows = np.flatnonzero(counted)
    pairs, place = np.unique(np.stack([owner[rows], trace.device.name[rows]]), axis=1, return_inverse=True)
    time = np.bincount(place.ravel(), weights=trace.device.duration[rows], minlength=pairs.shape[1]) / max(
        1, number_of_steps
    )
    kernels: list[list[tuple[int, int]]] = [[] for _ in range(total)]
    for column in np.argsort(-time).tolist():
        kernels[int(pairs[0, column])].append((int(pairs[1, column]), round(float(time[column]))))
    return [tuple(kernels_of_op) for kernels_of_op in kernels]
