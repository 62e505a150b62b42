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


def before(analysis: Analysis) -> Array:
    """For each op, the share of the step's gap that is before it; shape (ops,), at most 1 in sum."""
    idle, whole = _before(analysis)
    return idle / whole if whole else np.zeros(len(idle))


def dispatch(analysis: Analysis) -> Array:
    """For each op, the share of the step's gap that is at most its dispatch; shape (ops,)."""
    idle, whole = _before(analysis)
    return np.minimum(idle, _usual(idle)[1]) / whole if whole else np.zeros(len(idle))


def besides(analysis: Analysis) -> Array:
    """For each op, the share of the step's gap that is before it and at least is no dispatch; shape (ops,).

    Beyond what is usual, all but the median is something else. Nothing is said of the time before the first op: to
    start a compiled step is a dispatch of its own.
    """
    idle, whole = _before(analysis)
    if not whole or not len(idle):
        return np.zeros(len(idle))
    median, usual = _usual(idle)
    found: Array = np.where(idle > usual, idle - median, 0.0) / whole
    found[int(np.argmin([op.start_ns for op in analysis.profile.ops]))] = 0.0
    return found


def _usual(idle: Array) -> tuple[float, float]:
    """The median of the times before ops, and up to how long they are dispatch [ns]."""
    median = float(np.median(idle[idle > 0])) if (idle > 0).any() else 0.0
    return median, max(_SHORT, _USUAL * median)


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
