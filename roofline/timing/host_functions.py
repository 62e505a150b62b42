"""Name the function of Python that the host was in for most of a time, where a trace holds calls of Python."""

from __future__ import annotations

import numpy as np

from roofline.traces import nesting
from roofline.traces.kineto import python_calls
from roofline.traces.kineto.reader import KinetoTrace


def most_of(trace: KinetoTrace, thread: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Find the innermost function that lasted for more than half of each time on its thread: int64[n], -1 for none.

    low, high: of the times [ns]. The result is a row of `trace.frames`, of a function that has a file.
    """
    frames = trace.frames
    if not len(frames) or not len(low):
        return np.full(len(low), -1)
    has_file = np.asarray([python_calls.parsed(name) is not None for name in trace.names], bool)[frames.name]
    rows = np.flatnonzero(has_file & np.isin(frames.thread, thread))
    start, end, order = frames.start[rows], frames.end[rows], np.arange(len(rows))
    on = (frames.thread[rows], start, end, order)
    # What lasts for more than half of a time runs in its middle; around it are only calls that last for longer.
    call = nesting.innermost(*on, thread, (low + high) // 2)
    parent = np.append(nesting.parents(*on), -1)
    starts, ends = np.append(start, 0), np.append(end, 0)
    while True:
        shorter = (call >= 0) & (2 * (np.minimum(ends[call], high) - np.maximum(starts[call], low)) <= high - low)
        if not shorter.any():
            found: np.ndarray = np.append(rows, -1)[call]
            return found
        call = np.where(shorter, parent[call], call)
