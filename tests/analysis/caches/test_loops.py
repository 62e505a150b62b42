"""Ops that a loop runs: what a cache sees is what it would see of the loop written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.analysis.caches.accesses import Accesses
from roofline.analysis.caches.loops import unroll_loops
from roofline.analysis.caches.pieces import touch_pieces
from roofline.analysis.caches.recency import find_misses, find_write_backs


@pytest.mark.parametrize(
    ("times", "order", "reads", "writes"),
    [
        ([1, 1], [0, 1], [1, 1], [1, 1]),
        # A body of two ops, five turns: the second turn reads like four, the first one is written over like four.
        ([1, 5, 5, 1], [0, 1, 2, 1, 2, 3], [1, 1, 1, 4, 4, 1], [1, 4, 4, 1, 1, 1]),
        # Three turns of a body whose second op is a loop of two turns.
        ([3, 6], [0, 1, 1, 0, 1, 1], [1, 1, 1, 2, 2, 2], [2, 2, 2, 1, 1, 1]),
        # No whole number of turns: what stands for one turn stands for more of it, and nothing is lost.
        ([2, 3], [0, 1, 0, 1], [1, 1.5, 1, 1.5], [1, 1.5, 1, 1.5]),
    ],
)
def test_the_body_of_a_loop_stands_twice(
    times: list[int], order: list[int], reads: list[float], writes: list[float]
) -> None:
    assert [column.tolist() for column in unroll_loops(np.asarray(times))] == [order, reads, writes]


@given(st.lists(st.integers(1, 1 << 40), max_size=40))
def test_every_execution_is_stood_for(times: list[int]) -> None:
    order, *weights = unroll_loops(np.asarray(times, np.int64))
    for weight in weights:
        np.testing.assert_allclose(np.bincount(order, weight, len(times)), times, rtol=1e-9)
    assert len(order) <= 2**4 * len(times)  # four loops in each other are taken apart


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=3),
    st.integers(2, 6),
    st.integers(1, 12),
)
def test_a_loop_moves_what_it_moves_written_out(
    body: list[tuple[int, int]], before: list[tuple[int, int]], turns: int, cache: int
) -> None:
    """Each op reads one buffer and writes one, of as many bytes as their number plus one."""

    def accesses(ops: list[tuple[int, int]]) -> Accesses:
        pairs = np.asarray(ops, np.int64).reshape(-1, 2)
        return Accesses(pairs.ravel(), pairs.ravel() + 1.0, *np.ones((2, len(ops)), np.int64))

    def moved(step: Accesses) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of each op that are read from and written to main memory."""
        touches = touch_pieces(step, cache)
        misses = find_misses(touches, cache)
        write_backs = find_write_backs(touches, misses)
        read, written = touches.bytes * (misses & ~touches.written), touches.bytes * write_backs
        return tuple(np.bincount(touches.op, column, len(step.reads)) for column in (read, written))

    often = np.asarray([1] * len(before) + [turns] * len(body))
    order, reads, writes = unroll_loops(often)
    read, written = moved(accesses([*before, *body]).of(order))
    read_written_out, written_written_out = moved(accesses([*before, *body * turns]))
    assert (read * reads).sum() == pytest.approx(read_written_out.sum())
    assert (written * writes).sum() == pytest.approx(written_written_out.sum())
