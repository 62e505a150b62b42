"""Parallel thunks that end after their event: when they ran, and when they only waited for a thread.

A parallel thunk hands parts of its work to the threads of a pool and returns. Its event covers what its own thread did;
the last part is done where an event `end: <op>` stands, on the thread that did it. Between the two it ran, or stood in
the queue of that thread: on one thread a copy of 20 MB that was ready first was done last, 12 s later. A thread does
one thing at a time, so that a thunk did not run while the thread that ended it was inside another thunk's event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.timing.executor import Waits
from roofline.traces.xplane.reader import XTrace

Times = NDArray[np.int64]


class Tails(NamedTuple):
    """Hold when the thunks of some events were done [ps], and the stretches in which they waited."""

    end: Times
    waits: Waits


def tails(trace: XTrace, rows: NDArray[np.int64]) -> Tails:
    """The tails of the thunks whose events are in `rows`: of one that consumes nothing later, none."""
    # Ids of other kinds (of thread pools, say) may be the same numbers: only ends of ops are looked at.
    ends_op = np.asarray([name.startswith("end: ") for name in trace.names], bool)
    marks = np.flatnonzero((trace.consumes != -1) & ends_op[trace.name])
    marks = marks[np.argsort(trace.consumes[marks], kind="stable")]
    wanted = trace.produces[rows]
    at = np.searchsorted(trace.consumes[marks], wanted)
    matches = (np.append(trace.consumes[marks], -1)[at] == wanted) & (wanted != -1)
    ended = np.append(trace.end[marks], 0)[at]
    end = np.where(matches, np.maximum(trace.end[rows], ended), trace.end[rows])
    late = np.flatnonzero(end > trace.end[rows])
    thread = trace.line[marks[at[late]]]
    return Tails(end, _waits(trace, rows, late, thread, end[late]))


def _waits(trace: XTrace, rows: NDArray[np.int64], late: NDArray[np.int64], thread: Times, ended: Times) -> Waits:
    """Find the stretches behind each late event in which the thread that ended it was inside another's event."""
    row, opens, closes = [], [], []
    for line in np.unique(thread).tolist():
        mine = rows[trace.line[rows] == line]
        busy_start, busy_end = _leaves(trace.start[mine], trace.end[mine])
        for number in np.flatnonzero(thread == line).tolist():
            low, high = trace.end[rows[late[number]]], ended[number]
            # Inside an event that is still open at the end it was done by a thread that waited there for something.
            first, last = np.searchsorted(busy_end, low, "right"), np.searchsorted(busy_end, high, "right")
            row.append(np.full(last - first, rows[late[number]]))
            opens.append(np.maximum(busy_start[first:last], low))
            closes.append(busy_end[first:last])
    empty = np.zeros(0, np.int64)
    return Waits(*(np.concatenate([empty, *parts]).astype(np.int64) for parts in (row, opens, closes)))


def _leaves(start: Times, end: Times) -> tuple[Times, Times]:
    """The events of one thread that hold no other: a loop's event is open while the parts of its body wait."""
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    leaf = np.append(start[1:] >= end[:-1], True)[: len(start)]
    return start[leaf], end[leaf]
