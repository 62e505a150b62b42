"""Idle time, op by op: for how long no op ran before each one, and whether the host was in the framework meanwhile.

What is inside the framework's own events (views, autograd, a call of the library that runs the op) is how an op is
dispatched. What is outside of all of them is Python, or whatever else the user's program does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.traces import intervals
from roofline.traces.idle import LABELS, Idle

PYTHON_BETWEEN = LABELS.index("Python between ops")


def before_ops(
    start: np.ndarray,
    end: np.ndarray,
    owner: np.ndarray,
    n_owners: int,
    framework: tuple[np.ndarray, np.ndarray],
    window: tuple[int, int],
) -> NDArray[np.float64]:
    """Idle time before each op in a window, in the framework and outside; shape (n_owners, 2), in the unit of `start`.

    start, end, owner: what ran, as in `intervals.shares`. framework: starts and ends of the framework's events. What
    comes after the last op is before none.
    """
    opens, closes, ended_by = _gaps(start, end, *window)
    inside = intervals.covered(*framework, opens, closes)
    return _sums(owner, ended_by, inside, closes - opens - inside, n_owners)


def charges(
    start: np.ndarray,
    end: np.ndarray,
    owner: np.ndarray,
    n_owners: int,
    events: tuple[np.ndarray, np.ndarray],
    window: tuple[int, int],
) -> NDArray[np.float64]:
    """How many events began in that time, in the framework and outside; shape (n_owners, 2).

    events: when each began, and whether another one was around it. The op's own event counts: the time ends with it.
    """
    opens, closes, ended_by = _gaps(start, end, *window)
    began, nested = events
    counts = [
        np.searchsorted(times, closes, "right") - np.searchsorted(times, opens)
        for times in (np.sort(began[nested]), np.sort(began[~nested]))
    ]
    return _sums(owner, ended_by, *counts, n_owners)


def before_kernels(gaps: Idle, owner: np.ndarray, n_owners: int, steps: int) -> NDArray[np.float64]:
    """The same for a device that idled [s per step]: `owner` is that of each device event."""
    time = (gaps.end - gaps.start) * 1e-9 / max(1, steps)
    python = gaps.detail == PYTHON_BETWEEN
    return _sums(owner, gaps.ended_by, np.where(python, 0, time), np.where(python, time, 0), n_owners)


def _gaps(start: np.ndarray, end: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts and ends of the times in which nothing ran, and what ran next: -1 for nothing."""
    opens, closes = intervals.complement(start, end, low, high)
    lasting = np.flatnonzero(end > start)
    lasting = lasting[np.argsort(start[lasting], kind="stable")]
    return opens, closes, np.append(lasting, -1)[np.searchsorted(start[lasting], closes)]


def _sums(
    owner: np.ndarray, ended_by: np.ndarray, inside: np.ndarray, outside: np.ndarray, n_owners: int
) -> NDArray[np.float64]:
    known = ended_by >= 0
    rows = owner[ended_by[known]]
    sums = [np.bincount(rows, weights=part[known], minlength=n_owners) for part in (inside, outside)]
    return np.stack(sums, axis=1)
