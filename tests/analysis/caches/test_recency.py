"""Misses and write-backs against a cache that is walked through, piece by piece."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.analysis.caches.pieces import Touches
from roofline.analysis.caches.recency import find_misses, find_write_backs

Touch = tuple[int, bool]


def make_touches(step: list[Touch], sizes: list[float]) -> Touches:
    """One op per touch of a whole piece."""
    piece = np.asarray([piece for piece, _ in step], np.int64)
    size = np.asarray(sizes, np.float64)
    written = np.asarray([written for _, written in step], bool)
    return Touches(np.arange(len(step)), piece, written, size[piece], size, shared=True)


def walk_through(step: list[Touch], sizes: list[float], cache: float) -> tuple[list[bool], list[bool]]:
    """Misses and write-backs of the second of three equal steps, by a list of pieces with a dirty bit each."""
    held: OrderedDict[int, int | None] = OrderedDict()  # piece -> the touch that wrote it last; None: it is clean
    misses, write_backs = [False] * 3 * len(step), [False] * 3 * len(step)
    for number, (piece, written) in enumerate(3 * step):
        misses[number] = piece not in held
        writer = held.pop(piece, None)
        held[piece] = number if written else writer
        while sum(sizes[other] for other in held) > cache:
            _, evicted = held.popitem(last=False)
            if evicted is not None:
                write_backs[evicted] = True
    second = slice(len(step), 2 * len(step))
    return misses[second], write_backs[second]


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=14),
    st.lists(st.integers(1, 6), min_size=6, max_size=6),
    st.integers(0, 20),
)
def test_like_a_cache_that_is_walked_through(step: list[Touch], sizes: list[int], cache: int) -> None:
    touches = make_touches(step, [float(size) for size in sizes])
    misses = find_misses(touches, cache)
    assert (misses.tolist(), find_write_backs(touches, misses).tolist()) == walk_through(step, list(sizes), cache)


def test_a_chain_stays_while_it_fits() -> None:
    # Each op reads what the one before wrote: pieces 0 1 1 2 2 3 of 4 bytes. Between the last touch of piece 0 in one
    # step and its first in the next all four pieces are touched: 16 bytes.
    chain = [(0, False), (1, True), (1, False), (2, True), (2, False), (3, True)]
    touches = make_touches(chain, [4.0] * 4)
    assert find_misses(touches, 16).tolist() == [False] * 6
    misses = find_misses(touches, 10)
    assert misses.tolist() == [True, True, False, True, False, True]
    # None is written again before 16 other bytes pass through a cache of 10: all results reach memory, though each was
    # read at once.
    assert find_write_backs(touches, misses).tolist() == [False, True, False, True, False, True]


def test_what_is_written_again_in_time_does_not_reach_memory() -> None:
    # Piece 0 is written twice in a row: the first result is gone. The second one is evicted by the 8 bytes of 1 and 2.
    touches = make_touches([(0, True), (0, True), (1, False), (2, False)], [4.0] * 3)
    assert find_write_backs(touches, find_misses(touches, 8)).tolist() == [False, True, False, False]


def test_a_step_without_ops() -> None:
    nothing = make_touches([], [])
    assert find_misses(nothing, 1.0).tolist() == find_write_backs(nothing, find_misses(nothing, 1.0)).tolist() == []
