"""Lengths of time covered by intervals: unions, gaps, and the fair share of each owner.

All times of one call are of one kind: int64 [ns] stays exact, float64 [s] works as well. Intervals are half
open; those without length cover nothing.
"""

from __future__ import annotations

import numpy as np


def union(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the disjoint intervals that cover the same times, sorted; touching ones are joined."""
    lasting = end > start
    start, end = start[lasting], end[lasting]
    sequence = np.argsort(start, kind="stable")
    start, reach = start[sequence], np.maximum.accumulate(end[sequence])
    opens = np.append(True, start[1:] > reach[:-1])[: len(start)]
    closes = np.append(opens[1:], True)[: len(start)]
    return start[opens], reach[closes]


def length(start: np.ndarray, end: np.ndarray) -> int | float:
    """Time covered by at least one of the intervals."""
    start, end = union(start, end)
    time: int | float = (end - start).sum().item()
    return time


def complement(start: np.ndarray, end: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the times between `low` and `high` that no interval covers, sorted."""
    start, end = union(np.clip(start, low, high), np.clip(end, low, high))
    opens, closes = np.append(end.dtype.type(low), end), np.append(start, start.dtype.type(high))
    gap = closes > opens
    return opens[gap], closes[gap]


def covered(start: np.ndarray, end: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """For each pair of `low` and `high` the time between them that at least one of the intervals covers."""
    start, end = union(start, end)
    before = np.append(start.dtype.type(0), np.cumsum(end - start))  # covered before the nth interval begins

    def until(time: np.ndarray) -> np.ndarray:
        n = np.searchsorted(start, time)
        overshoot = np.maximum(np.append(end.dtype.type(0), end)[n] - time, 0)
        return before[n] - np.where(n > 0, overshoot, 0)

    time: np.ndarray = until(high) - until(low)
    return time


def shares(start: np.ndarray, end: np.ndarray, owner: np.ndarray, n_owners: int) -> np.ndarray:
    """float64[n_owners]: the time of each owner, an instant that k owners share counting 1/k to each.

    `owner`: int in [0, n_owners). Intervals of one owner that overlap count once. The shares add up to the
    length of the union of all intervals.
    """
    start, end, owner = _by_owner(start, end, owner)
    times, at = np.unique(np.concatenate((start, end)), return_inverse=True)
    opened, closed = at[: len(start)], at[len(start) :]
    running = np.cumsum(np.bincount(opened, minlength=len(times)) - np.bincount(closed, minlength=len(times)))
    # Time passed since the first start, slowed down by the number of owners that run.
    worth = np.diff(times) / np.maximum(running[:-1], 1)
    passed = np.append(0.0, np.cumsum(worth))
    return np.bincount(owner, weights=passed[closed] - passed[opened], minlength=n_owners)


def own(start: np.ndarray, end: np.ndarray, owner: np.ndarray, n_owners: int) -> np.ndarray:
    """float64[n_owners]: the length of the union of each owner's intervals, whoever else runs."""
    start, end, owner = _by_owner(start, end, owner)
    return np.bincount(owner, weights=end - start, minlength=n_owners)


def _by_owner(start: np.ndarray, end: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The union of each owner's intervals, as columns start, end, owner.

    Owners are laid out one after another on one long line of ranks, where a single union does for all.
    """
    times, rank = np.unique(np.concatenate((start, end)), return_inverse=True)
    # One rank more than there are times keeps the last of an owner from touching the first of the next.
    line = np.tile(owner.astype(np.int64), 2) * (len(times) + 1) + rank
    opens, closes = union(line[: len(start)], line[len(start) :])
    stride = len(times) + 1
    return times[opens % stride], times[closes % stride], opens // stride
