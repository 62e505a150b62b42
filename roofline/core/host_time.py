"""Where in a step no op ran: before which op. From the representative profiled step.

What is between two ops is the host's dispatch of the second one, and whatever else the host does there. The first is
much the same for all ops of a step, so what is far more than that is told apart: sleeping, Python, input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.core.analysis import Analysis

Array = NDArray[np.float64]

#: Up to so many times the median, time before an op is its dispatch; and up to so long [ns]: an op with a few views
#: before it takes Python as much, and the shortest sleep of Linux takes 50 us (its timers' slack).
_USUAL, _SHORT = 10.0, 20_000.0


def dispatch(analysis: Analysis) -> Array:
    """For each op, the share of the step's gap that is its dispatch; shape (ops,), at most 1 in sum."""
    idle, whole = _before(analysis)
    if not whole:
        return np.zeros(len(idle))
    some = idle[idle > 0]
    usual = max(_SHORT, _USUAL * float(np.median(some))) if len(some) else 0.0
    return np.minimum(idle, usual) / whole


def besides(analysis: Analysis) -> Array:
    """For each op, the share of the step's gap that is before it and is not dispatch; shape (ops,).

    Nothing is said of the time before the first op: to start a compiled step is a dispatch of its own.
    """
    idle, whole = _before(analysis)
    if not whole or not len(idle):
        return np.zeros(len(idle))
    found: Array = idle / whole - dispatch(analysis)
    found[int(np.argmin([op.start_ns for op in analysis.profile.ops]))] = 0.0
    return found


def _before(analysis: Analysis) -> tuple[Array, float]:
    """Time before each op in which no other ran, and all such time of the step, its end included [ns]."""
    profile = analysis.profile
    start = np.asarray([op.start_ns for op in profile.ops], np.float64)
    end = start + np.asarray([np.mean(op.own_ns) if op.own_ns else 0.0 for op in profile.ops], np.float64)
    order = np.argsort(start, kind="stable")
    # What of an op another one overlaps is counted once: the latest end so far.
    ended = np.concatenate([[0.0], np.maximum.accumulate(end[order])])
    idle = np.zeros(len(start))
    idle[order] = np.maximum(0.0, start[order] - ended[:-1])
    # What of the idle time was seen in all kept steps is not before an op of this one was after the last op.
    seen = 1e9 * float(np.mean(profile.profiled.idle)) if profile.profiled and profile.profiled.idle else 0.0
    return idle, max(float(idle.sum()), seen)
