"""Name the function of Python that the host was in for most of a time, where a trace holds calls of Python."""

from __future__ import annotations

import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto import python_calls
from roofline.traces.kineto.events import Spans
from roofline.traces.kineto.reader import KinetoTrace


def most_of(trace: KinetoTrace, thread: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the innermost function that lasted for more than half of each time on its thread, in all of its calls.

    low, high: of disjoint times [ns]. Returns int64[n], indices into `trace.names`, -1 for none. Functions that are
    built in, which have no file, are those that call them.
    """
    if not len(trace.frames) or not len(low):
        return np.full(len(low), -1)
    has_file = np.asarray([python_calls.parsed(name) is not None for name in trace.names], bool)
    frames = trace.frames.select(has_file[trace.frames.name] & np.isin(trace.frames.thread, thread))
    called = _most_called(frames, thread, low, high)
    return np.where(called >= 0, called, _around(frames, thread, low, high))


def _most_called(frames: Spans, thread: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the function whose calls that began in a time fill more than half of it; of several the innermost.

    That one takes the least time of them, and of as long ones it began last.
    """
    order = np.argsort(low, kind="stable")
    place = np.append(order, -1)[np.searchsorted(low[order], frames.start, "right") - 1]
    rows = np.flatnonzero((place >= 0) & (frames.start < high[place]) & (frames.thread == thread[place]))
    if not len(rows):
        return np.full(len(low), -1)
    place = place[rows]
    sequence = np.lexsort((frames.start[rows], frames.name[rows], place))
    rows, place = rows[sequence], place[sequence]
    start, end = frames.start[rows] - low[place], np.minimum(frames.end[rows], high[place]) - low[place]
    keys = np.stack([place, frames.name[rows]])
    begins = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    # A call in one of the same function is no further time: only what is behind the ends so far counts. Functions are
    # moved apart, each by the length of its time, so that none reaches into the next.
    apart = np.cumsum((high - low)[place[begins]] + 1).repeat(np.diff(np.append(begins, len(rows))))
    reached = np.maximum.accumulate(np.append(0, end + apart))[:-1]
    lasted = np.add.reduceat(np.maximum(0, end + apart - np.maximum(start + apart, reached)), begins)
    place, name, start = place[begins], frames.name[rows[begins]], frames.start[rows[begins]]
    most = np.flatnonzero(2 * lasted > (high - low)[place])
    most = most[np.lexsort((start[most], -lasted[most]))]  # of each time the last one stays
    found = np.full(len(low), -1)
    found[place[most]] = name[most]
    return found


def _around(frames: Spans, thread: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the function of the innermost call that lasted for more than half of each time."""
    on = (frames.thread, frames.start, frames.end, np.arange(len(frames)))
    # What lasts for more than half of a time runs in its middle; around it are only calls that last for longer.
    call = nesting.innermost(*on, thread, (low + high) // 2)
    parent = np.append(nesting.parents(*on), -1)
    starts, ends = np.append(frames.start, 0), np.append(frames.end, 0)
    rows = np.flatnonzero(call >= 0)
    while len(rows):  # those whose call is still too short, each to the call around it
        at, start, end = call[rows], low[rows], high[rows]
        rows = rows[2 * (np.minimum(ends[at], end) - np.maximum(starts[at], start)) <= end - start]
        call[rows] = parent[call[rows]]
        rows = rows[call[rows] >= 0]
    return np.where(call >= 0, np.append(frames.name, -1)[call], -1)
