"""The profiled run on a GPU: each op's time is the union of the device events launched inside it.

Device events without an op stay in the step as ops of unknown work, named after their kernel: busy time is busy time,
whoever asked for it. Kernels that a graph replayed get their ops back from a trace of the same program without graphs.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def flags(timed: Timed) -> tuple[str, ...]:
    """List what a reader must know of kernels that graphs replayed."""
    facts = []
    if isinstance(timed, TimedCuda) and timed.unattributed:
        facts.append(f"replays-unattributed: {timed.unattributed} kernels per step")
    if isinstance(timed, TimedCuda) and timed.by_order:
        facts.append("replays-by-order")
    return tuple(facts)


def time_cuda(
    trace: KinetoTrace,
    counted: Counted,
    prefix: str | None,
    reference: KinetoTrace | None = None,
) -> TimedCuda:
    """Op times on a GPU, per kept step; rows beyond the counted ops are `Timed.extra`, kernels without an op.

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
    step = steps.assign(marks, trace, links)
    low, high = steps.device_windows(marks, trace, step)
    walls = (high - low) * 1e-9
    # The first step's window begins on the host and holds the ramp-up of the queue.
    candidates = np.arange(1 if len(marks) > 1 else 0, len(marks))
    candidates = candidates[walls[candidates] > 0]
    if not len(candidates):
        raise MeasurementError("no profiled step took any time on the device; record the trace again.")
    chosen = candidates[walls[candidates] <= OUTLIER * np.median(walls[candidates])]

    twin, joined, events, unmatched = _twins(trace, counted, marks, chosen)
    inner = np.append(twin, -1)[links.op]  # the counted call around each device event
    op = np.where(inner >= 0, np.append(counted.op_of, -1)[inner], -1)
    in_steps = np.isin(step, chosen)
    by_order = False
    if reference is not None and (links.graph & in_steps).any():
        op, joined, unmatched, by_order = _replayed(trace, links, step, op, reference, counted, prefix)
    names, owner = _owners(trace, op, len(counted.ops))
    total = len(counted.ops) + len(names)

    device = trace.device
    own, shares = np.zeros((total, len(chosen))), np.zeros((total, len(chosen)))
    for column, number in enumerate(chosen.tolist()):
        rows = np.flatnonzero(step == number)
        spans = device.start[rows], device.end[rows], owner[rows], total
        own[:, column] = intervals.own(*spans) * 1e-9
        shares[:, column] = intervals.shares(*spans) * 1e-9
    gaps = idle.causes(trace, links, low[chosen], high[chosen])
    gap_time = (gaps.end - gaps.start) * 1e-9
    kernel = device.kind == KERNEL  # copies and fills start without the launch whose floor is known
    start = np.full(total, np.iinfo(np.int64).max)
    first = np.flatnonzero(step == chosen[0])
    np.minimum.at(start, owner[first], device.start[first])
    begin = low[chosen[0]]
    by_graph = links.graph & in_steps
    lost = by_graph & (op < 0)
    return TimedCuda(
        own=own,
        overlap=(own - shares).mean(axis=1),
        start=np.where(start < np.iinfo(np.int64).max, start - begin, 0) * 1e-9,
        walls=walls[chosen],
        corrected=walls[chosen],
        idle=np.bincount(gaps.window, weights=gap_time, minlength=len(chosen)).astype(float),
        host=gaps.before_kernels(owner, total, len(chosen)),
        causes={name: time / len(chosen) for name, time in gaps.seconds().items() if time > 0},
        joined=joined,
        events=events,
        dropped=len(candidates) - len(chosen),
        unmatched=unmatched,
        kernels=kernel_times(trace, owner, in_steps, total, len(chosen)),
        kernel_names=trace.names,
        launches=np.rint(np.bincount(owner[in_steps & kernel], minlength=total) / len(chosen)).astype(np.int64),
        extra=names,
        graph_launches=round(len(np.unique(links.launch[by_graph])) / len(chosen)),
        graph_kernels=round(int((by_graph & kernel).sum()) / len(chosen)),
        replayed=np.rint(np.bincount(owner[by_graph], minlength=total) / len(chosen)).astype(np.int64),
        unattributed=round(int(lost.sum()) / len(chosen)),
        by_order=by_order,
    )


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
    inner = np.append(twin, -1)[reference_links.op[rows]]
    op_of_rows = np.where(inner >= 0, np.append(counted.op_of, -1)[inner], -1)

    wanted = np.flatnonzero(np.isin(step, step[links.graph]) & (step >= 0))
    replayed, plain = replays.columns((trace, links, step, wanted), (reference, reference_links, placed, rows))
    op = op.copy()
    op[wanted] = replays.owners(replayed, plain, op_of_rows, op[wanted])
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


def kernel_times(
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
