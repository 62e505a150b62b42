"""Whether the ops of a step run on other threads than the one that dispatches them, which can go on meanwhile."""

from __future__ import annotations

import numpy as np

from roofline.timing.executor import Owned, windows
from roofline.traces.xplane.reader import XTrace

#: Up to this share of their time ops may run on the thread that dispatches. By choice: XLA runs next to nothing there,
#: programs of a few instructions, where it runs the others on threads of a pool.
_SOME = 0.05


def elsewhere(trace: XTrace, owned: Owned, prefix: str) -> bool:
    """Whether nearly all of the time of the ops of the marked steps is on other threads than that of the marks."""
    marks = {code for code, name in enumerate(trace.names) if name.startswith(f"{prefix}#")}
    lines = np.unique(trace.line[np.isin(trace.name, list(marks))])
    here = whole = 0
    for low, high in windows(trace, prefix):
        rows = np.flatnonzero((owned.op >= 0) & (owned.start >= low) & (owned.start < high))
        time = trace.end[rows] - trace.start[rows]
        whole += int(time.sum())
        here += int(time[np.isin(trace.line[rows], lines)].sum())
    return here <= _SOME * whole
