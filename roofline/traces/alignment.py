"""Matching the events of a profiled step with the calls of the counted one.

Neither run changes the op stream, so per thread the two sequences of names are equal; where they are not (data decided
differently), equal runs are matched and the rest is reported, never dropped in silence.
"""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

#: Beyond this many unequal events the quadratic match is not tried.
MAX_UNEQUAL = 20_000


def align(profiled: NDArray[np.int64], counted: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each profiled name code the position of its counted twin, or -1. Codes are shared by both."""
    n, m = len(profiled), len(counted)
    if n == m and np.array_equal(profiled, counted):
        return np.arange(n)
    shorter = min(n, m)
    unequal = np.flatnonzero(profiled[:shorter] != counted[:shorter])
    head = int(unequal[0]) if len(unequal) else shorter
    unaligned = shorter - head
    unequal = np.flatnonzero(profiled[n - unaligned :][::-1] != counted[m - unaligned :][::-1])
    tail = int(unequal[0]) if len(unequal) else unaligned
    twin = np.full(n, -1, np.int64)
    twin[:head] = np.arange(head)
    twin[n - tail :] = np.arange(m - tail, m)
    profiled_middle, counted_middle = profiled[head : n - tail].tolist(), counted[head : m - tail].tolist()
    if 0 < len(profiled_middle) <= MAX_UNEQUAL and 0 < len(counted_middle) <= MAX_UNEQUAL:
        for block in SequenceMatcher(None, profiled_middle, counted_middle, autojunk=False).get_matching_blocks():
            twin[head + block.a : head + block.a + block.size] = np.arange(head + block.b, head + block.b + block.size)
    return twin


def align_threads(
    profiled: NDArray[np.int64],
    profiled_thread: NDArray[np.int64],
    counted: NDArray[np.int64],
    counted_thread: NDArray[np.int64],
) -> NDArray[np.int64]:
    """`align` thread by thread; threads are paired in the order in which they first appear."""
    twin = np.full(len(profiled), -1, np.int64)
    for profiled_code, counted_code in zip(_threads(profiled_thread), _threads(counted_thread), strict=False):
        mine, theirs = np.flatnonzero(profiled_thread == profiled_code), np.flatnonzero(counted_thread == counted_code)
        place = align(profiled[mine], counted[theirs])
        twin[mine] = np.where(place >= 0, theirs[place], -1)
    return twin


def _threads(column: NDArray[np.int64]) -> list[int]:
    """The distinct values of a column in order of first appearance."""
    values, first = np.unique(column, return_index=True)
    return [int(value) for value in values[np.argsort(first)]]
