"""Detect asynchronous dispatch: the ops of a step run on other threads than the one that dispatches them."""

from __future__ import annotations

import numpy as np

from roofline.timing.executor import Owned, windows
from roofline.traces.xplane.reader import XTrace

#: Largest share of their time for which ops may run on the dispatching thread. By choice: XLA runs next to nothing
#: there, programs of a few instructions, where it runs the others on threads of a pool.
_SOME = 0.05


def is_async(trace: XTrace, owned: Owned, prefix: str) -> bool:
    """Tell whether the ops of the marked steps run nearly all of their time on other threads than the marks'."""
    marks = {code for code, name in enumerate(trace.names) if name.startswith(f"{prefix}#")}
    lines = np.unique(trace.line[np.isin(trace.name, list(marks))])
    dispatch_time = total_time = 0
    for low, high in windows(trace, prefix):
        rows = np.flatnonzero((owned.op >= 0) & (owned.start >= low) & (owned.start < high))
        time = trace.end[rows] - trace.start[rows]
        total_time += int(time.sum())
        dispatch_time += int(time[np.isin(trace.line[rows], lines)].sum())
    return dispatch_time <= _SOME * total_time
