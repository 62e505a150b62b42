"""Nest the ranges of threads: parents, depths, the innermost interval at a time.

Sorted by (thread, start, longest first, order), the parent of an interval is the last one before it that ends
no earlier. A stack finds it one interval at a time; here a tree of maxima finds it for all at once. Events whose
times collide (whole microseconds) are handled by the same rule, so that there is no second way.
"""

from __future__ import annotations

import numpy as np


def parents(thread: np.ndarray, start: np.ndarray, end: np.ndarray, order: np.ndarray) -> np.ndarray:
    """int64[n]: index of the innermost interval of the same thread that holds each interval, -1 for none.

    Times are int64. Of equal intervals the one with the smaller `order` is outside. An interval without length
    at the end of another lies in it. Intervals that overlap without holding each other are no relations.
    """
    sequence = np.lexsort((order, -end, start, thread))
    ends = end[sequence]
    position = np.arange(len(sequence))
    holder = _last_at_least(ends, position, ends)
    first = _first_of_thread(thread[sequence])
    result = np.empty(len(sequence), np.int64)
    result[sequence] = np.where(holder >= first, sequence[holder], -1)
    return result


def innermost(
    thread: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    order: np.ndarray,
    query_thread: np.ndarray,
    query_time: np.ndarray,
    query_end: np.ndarray | None = None,
) -> np.ndarray:
    """int64[m]: index of the innermost interval that holds each query, -1 for none.

    A query is a time on a thread, or with `query_end` an interval, which the result must hold to its end.
    Intervals are closed: at a time where one ends and none begins, it still holds.
    """
    sequence = np.lexsort((order, -end, start, thread))
    # A thread and a time as one number that sorts like the pair; ranks, because times alone may fill 63 bits.
    times = distinct(start)
    key = thread[sequence].astype(np.int64) * (len(times) + 1) + np.searchsorted(times, start[sequence], "right")
    wanted = query_thread.astype(np.int64) * (len(times) + 1) + np.searchsorted(times, query_time, "right")
    position = np.searchsorted(key, wanted, "right")
    least = query_time if query_end is None else query_end
    holder = _last_at_least(end[sequence], position, least)
    first = np.searchsorted(thread[sequence], query_thread, "left")
    return np.where((holder >= first) & (holder >= 0), np.append(sequence, -1)[holder], -1)


class Innermost:
    """Find the innermost of ranges, whatever their threads, at any time: all stretches between edges at once."""

    def __init__(self, start: np.ndarray, end: np.ndarray) -> None:
        """start, end: int64 [ns], sorted by start."""
        self._edges = np.unique(np.concatenate([start, end + 1]))
        one_thread, queries = np.zeros(len(start), np.int64), np.zeros(len(self._edges), np.int64)
        order = np.arange(len(start))
        self._row = innermost(one_thread, start, end, order, queries, self._edges) if len(start) else queries

    def at(self, time: int) -> int:
        """Return the row of the innermost range around a time [ns], edges included, -1 for none."""
        edge = int(np.searchsorted(self._edges, time, "right")) - 1
        return int(self._row[edge]) if edge >= 0 else -1


def depths(parent: np.ndarray) -> np.ndarray:
    """int64[n]: number of ancestors of each interval, 0 for a root."""
    jump = np.append(parent, len(parent))  # one more element, its own parent, stands for "none"
    jump[jump < 0] = len(parent)
    depth = (jump < len(parent)).astype(np.int64)
    while (jump < len(parent)).any():  # each round doubles the distance looked at
        depth = depth + depth[jump]
        jump = jump[jump]
    return depth[:-1]


def children_count(parent: np.ndarray) -> np.ndarray:
    """int64[n]: number of direct children of each interval."""
    return np.bincount(parent[parent >= 0], minlength=len(parent)).astype(np.int64)


def nearest(parent: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """int64[n]: each interval itself if it is marked, else its nearest marked ancestor, else -1."""
    none = len(parent)
    identity = np.arange(none + 1)
    jump = np.where(np.append(marked, True), identity, np.append(np.where(parent < 0, none, parent), none))
    while True:
        further = jump[jump]
        if np.array_equal(further, jump):
            return np.where(jump == none, -1, jump)[:-1]
        jump = further


def outermost(parent: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """int64[n]: the outermost marked interval among each interval and its ancestors, else -1."""
    nearest_marked = nearest(parent, marked)
    # Among the marked ones alone, the parent is the nearest marked one above.
    above = np.where(parent >= 0, nearest_marked[parent], -1)
    top = nearest(above, marked & (above < 0))
    return np.where(nearest_marked >= 0, top[nearest_marked], -1)


def distinct(values: np.ndarray) -> np.ndarray:
    """The different values, sorted; quicker than np.unique for times, which are nearly sorted already."""
    values = np.sort(values, kind="stable")
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def _first_of_thread(thread: np.ndarray) -> np.ndarray:
    """For each element of a sorted array, the index of the first equal one."""
    return np.searchsorted(thread, thread, "left")


def _last_at_least(values: np.ndarray, position: np.ndarray, least: np.ndarray) -> np.ndarray:
    """int64[m]: for each query the largest index below `position` with values[index] >= least, -1 for none.

    A tree of maxima over pairs, pairs of pairs and so on is climbed until a left neighbour holds such a value,
    then descended to the last one: 2 log2(n) steps for all queries together.
    """
    if not len(values):
        return np.full(len(position), -1, np.int64)
    tree = [values]
    while len(tree[-1]) > 1:
        below = tree[-1]
        paired = np.maximum(below[0 : len(below) - 1 : 2], below[1::2])
        tree.append(np.append(paired, below[-1:]) if len(below) % 2 else paired)
    result = np.full(len(position), -1, np.int64)
    height = np.full(len(position), -1, np.int64)
    seeking = np.arange(len(position))
    for level, maxima in enumerate(tree):
        node = position[seeking] >> level
        neighbour = node - 1
        # Only a right child has a left neighbour that the levels below did not cover.
        hit = (node & 1 == 1) & (maxima[neighbour] >= least[seeking])
        result[seeking[hit]] = neighbour[hit]
        height[seeking[hit]] = level
        seeking = seeking[~hit]
    for level in range(len(tree) - 1, 0, -1):
        at_level = np.flatnonzero(height == level)
        right = np.minimum(2 * result[at_level] + 1, len(tree[level - 1]) - 1)
        fits = tree[level - 1][right] >= least[at_level]
        result[at_level] = np.where(fits, right, 2 * result[at_level])
        height[at_level] = level - 1
    return result
