"""Compute op times from the events of an executor: XLA's thunks, TensorFlow's nodes, or the kernels of a GPU.

Every event belongs to one op or to none. An op's own time is the union of its events in a step; an instant that k ops
share counts 1/k to each, so that the shares add up to the time in which any op ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from roofline.timing import host
from roofline.timing.timed import HOST_DISPATCH, PYTHON, Timed
from roofline.traces import intervals
from roofline.traces.xplane.reader import XTrace

PICOSECOND = 1e-12
#: Starts and ends [ps].
Spans = tuple[NDArray[np.int64], NDArray[np.int64]]
_Number = TypeVar("_Number", np.int64, np.float64)


class Waits(NamedTuple):
    """Hold stretches in which an op had begun and did not run: the event (its row in the trace), start and end [ps].

    They lie within the events and do not overlap within one event.
    """

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


NO_WAITS = Waits(*(np.zeros(0, np.int64),) * 3)


@dataclass(frozen=True, slots=True, eq=False)
class Owned:
    """Assign the events of a trace to ops.

    op: the number of each event's op, or -1. start, end: [ps], as the op ran (an asynchronous tail included).
    lost: events of the executor that no known op explains. waits: of ops within their events. device: the events are of
    a GPU, whose kernels are listed by name.
    """

    op: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    lost: NDArray[np.bool_]
    waits: Waits = NO_WAITS
    device: bool = False


def windows(trace: XTrace, prefix: str) -> list[tuple[int, int]]:
    """List (start, end) [ps] of the host's annotations named prefix#0, prefix#1, ..., in order of time."""
    codes = [code for code, name in enumerate(trace.names) if name.startswith(f"{prefix}#")]
    rows = np.flatnonzero(np.isin(trace.name, codes))
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    return list(zip(trace.start[rows].tolist(), trace.end[rows].tolist(), strict=True))


def time_steps(trace: XTrace, owned: Owned, ops: int, prefix: str, event_cost: float) -> list[Timed]:
    """Time `ops` ops in each marked step.

    event_cost: the time that one event adds around it [s], on a CPU; a GPU's times are not lengthened.
    """
    return [_time(trace, owned, ops, low, high, prefix, event_cost) for low, high in windows(trace, prefix)]


def _time(trace: XTrace, owned: Owned, ops: int, low: int, high: int, prefix: str, event_cost: float) -> Timed:
    inside = (owned.start >= low) & (owned.start < high)
    owned_rows = np.flatnonzero(inside & (owned.op >= 0))
    lost = np.flatnonzero(inside & owned.lost)
    extra_codes, extra = np.unique(trace.name[lost], return_inverse=True)
    rows = np.concatenate((owned_rows, lost))
    owner = np.concatenate((owned.op[owned_rows], ops + extra))
    number = ops + len(extra_codes)
    # Events that still run when the step ends belong to it: the step was waited for, so that is only rounding.
    event_start = owned.start[rows]
    start, end, piece = _cut_waits(owned.waits, rows, event_start, owned.end[rows])
    owner, event_owner = owner[piece], owner
    own_seconds = intervals.own(start, end, owner, number) * PICOSECOND
    share = intervals.shares(start, end, owner, number) * PICOSECOND
    first = np.full(number, high, np.int64)
    np.minimum.at(first, event_owner, event_start)
    events = int(((trace.start >= low) & (trace.start < high)).sum())
    wall = (high - low) * PICOSECOND
    # Events of a device cost the host time, which the device does not wait for as long as its queue is filled.
    cost = 0.0 if owned.device else event_cost * events
    corrected = max(wall - cost, float(share.sum()), 1e-9)
    idle = corrected - float(share.sum())
    all_time = float(share.sum())
    framework = _framework(trace, low, high, prefix)
    names = [trace.names[code] for code in extra_codes.tolist()]
    kernels, kernel_names, launches = _kernels(trace, owned, rows, event_owner, number)
    return Timed(
        own=own_seconds[:, None],
        overlap=own_seconds - share,
        start=np.asarray((first - low) * PICOSECOND, np.float64),
        walls=np.asarray([wall]),
        corrected=np.asarray([corrected]),
        idle=np.asarray([idle]),
        host=_host(framework, (start, end), owner, number, low, high, idle),
        causes=_causes(framework, (start, end), low, high, idle),
        joined=float(share[:ops].sum()) / all_time if all_time else 0.0,
        events=events,
        dropped=0,
        unmatched=dict(zip(names, share[ops:].tolist(), strict=True)),
        kernels=kernels,
        kernel_names=kernel_names,
        launches=launches,
        extra=tuple(names),
        unseen=int((np.bincount(event_owner, minlength=number)[:ops] == 0).sum()),
        programs=_programs(trace, owned_rows),
    )


def _cut_waits(
    waits: Waits, rows: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cut waits out of the events in `rows`: starts and ends of the stretches, and their indices in `rows`.

    An event with n waits has n + 1 stretches: from its start or the end of a wait to the start of the next or its end.
    """
    order = np.argsort(rows, kind="stable")
    at = np.searchsorted(rows[order], waits.row)
    matches = np.append(rows[order], -1)[at] == waits.row
    of = order[at[matches]]
    begins, begin_event = np.concatenate((start, waits.end[matches])), np.concatenate((np.arange(len(rows)), of))
    ends, end_event = np.concatenate((end, waits.start[matches])), np.concatenate((np.arange(len(rows)), of))
    first, last = np.lexsort((begins, begin_event)), np.lexsort((ends, end_event))
    return begins[first], ends[last], begin_event[first]


def _programs(trace: XTrace, rows: NDArray[np.int64]) -> float | None:
    """Count the executions of compiled programs among events; None where an event names none."""
    if not len(rows) or (trace.run[rows] == 0).any():
        return None
    return float(len(np.unique(np.stack([trace.program[rows], trace.run[rows]]), axis=1).T))


def _kernels(
    trace: XTrace, owned: Owned, rows: NDArray[np.int64], owner: NDArray[np.int64], number: int
) -> tuple[list[tuple[tuple[int, int], ...]], tuple[str, ...], NDArray[np.int64] | None]:
    """On a GPU, list the kernels of each op (number of the name, time [ns]), their names, and launches per op."""
    if not owned.device:
        return [()] * number, (), None
    codes, name = np.unique(trace.name[rows], return_inverse=True)
    length = (owned.end[rows] - owned.start[rows]) // 1000
    order = np.lexsort((name, owner))
    kernels: list[list[tuple[int, int]]] = [[] for _ in range(number)]
    # One pair per op and kernel name: a loop launches the same kernel many times.
    keys, first = np.unique(owner[order] * len(codes) + name[order], return_index=True)
    sums = np.add.reduceat(length[order], first) if len(first) else length[:0]
    for key, time in zip(keys.tolist(), sums.tolist(), strict=True):
        kernels[key // len(codes)].append((key % len(codes), time))
    names = tuple(trace.names[code] for code in codes.tolist())
    return [tuple(op_kernels) for op_kernels in kernels], names, np.bincount(owner, minlength=number)


def _causes(framework: Spans, ran: Spans, low: int, high: int, idle: float) -> dict[str, float]:
    """Split idle time into that inside the framework (any of its events runs) and outside of it (Python) [s]."""
    start, end = (np.concatenate(spans) for spans in zip(framework, ran, strict=True))
    covered = intervals.length(np.clip(start, low, high), np.clip(end, low, high)) * PICOSECOND
    python = min(idle, max(0.0, (high - low) * PICOSECOND - covered))
    return {HOST_DISPATCH: idle - python, PYTHON: python}


def _host(
    framework: Spans, ran: Spans, owner: NDArray[np.int64], owners: int, low: int, high: int, idle: float
) -> NDArray[np.float64]:
    """Compute idle time before each op, in the framework and outside [s]; the cost of events is taken off all alike."""
    idle_time = host.gaps(*ran, owner, owners, low, high).time(*framework)
    raw = (high - low - intervals.length(*(np.clip(times, low, high) for times in ran))) * PICOSECOND
    return idle_time * PICOSECOND * (min(1.0, idle / raw) if raw > 0 else 0.0)


def _framework(trace: XTrace, low: int, high: int, prefix: str) -> Spans:
    """List starts and ends of all events in a step except our own marks [ps]."""
    ours = [code for code, name in enumerate(trace.names) if name.startswith(prefix)]
    foreign = (trace.end > low) & (trace.start < high) & ~np.isin(trace.name, ours)
    return trace.start[foreign], trace.end[foreign]


def aligned(parts: Sequence[Timed], ops: int) -> list[Timed]:
    """Give all steps the same extra rows: each has only the names of its own lost events."""
    names = tuple(dict.fromkeys(name for part in parts for name in part.extra))
    return [_with_extra(part, ops, names) for part in parts]


def _with_extra(part: Timed, ops: int, names: tuple[str, ...]) -> Timed:
    place = [*range(ops), *(ops + part.extra.index(name) if name in part.extra else -1 for name in names)]
    rows = np.asarray(place, np.int64)
    present = rows >= 0

    def pick(values: NDArray[_Number]) -> NDArray[_Number]:
        chosen = np.zeros((len(rows), *values.shape[1:]), values.dtype)
        chosen[present] = values[rows[present]]
        return chosen

    return replace(
        part,
        own=pick(part.own),
        overlap=pick(part.overlap),
        start=pick(part.start),
        host=pick(part.host),
        kernels=[() if row < 0 else part.kernels[row] for row in place],
        launches=None if part.launches is None else pick(part.launches),
        extra=names,
    )
