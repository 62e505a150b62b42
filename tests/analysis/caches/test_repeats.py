"""Loops in a step, seen by the buffers that its ops touch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from roofline.analysis.caches import repeats as module
from roofline.analysis.caches.accesses import Accesses
from roofline.analysis.caches.pieces import touch_pieces
from roofline.analysis.caches.recency import find_misses, find_write_backs
from roofline.analysis.caches.repeats import Repeat, repeats


def step(*ops: int, sizes: tuple[float, ...] = ()) -> Accesses:
    """Each op reads the buffer of its number and writes the one of ten more; of so many bytes, by default 4."""
    buffers = np.asarray([buffer for op in ops for buffer in (op, op + 10)], np.int64)
    size = np.repeat(np.asarray(sizes or 4.0 * np.ones(len(ops))), 2)
    return Accesses(buffers, size, *np.ones((2, len(ops)), np.int64))


@pytest.fixture(autouse=True)
def _short_ones_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST", 1)


def test_a_loop_is_as_long_as_its_turns_are_equal() -> None:
    # 7, then four turns of 1 2 3 and the begin of a fifth, which ends differently
    assert repeats(step(7, *(1, 2, 3) * 4, 1, 2, 9)) == [Repeat(1, 3, 4)]
    # two turns are none: nothing would be saved
    assert repeats(step(*(1, 2, 3) * 2)) == []
    assert repeats(step()) == []
    # two loops; the second has the longer period, and both stand
    assert repeats(step(*(1, 2) * 5, *(3, 4, 5) * 4)) == [Repeat(0, 2, 5), Repeat(10, 3, 4)]


def test_of_loops_in_loops_the_outer_one_saves_more() -> None:
    # (1 1 1 1 2) three times: the inner loop saves three ops in each turn, the outer one ten
    assert repeats(step(*(1, 1, 1, 1, 2) * 3)) == [Repeat(0, 5, 3)]


def test_ops_that_touch_more_of_a_buffer_are_others() -> None:
    assert repeats(step(1, 2, 1, 2, 1, 2, sizes=(4, 4, 4, 4, 4, 4))) == [Repeat(0, 2, 3)]
    assert repeats(step(1, 2, 1, 2, 1, 2, sizes=(4, 4, 4, 4, 8, 4))) == []


def test_reads_and_writes_are_not_the_same() -> None:
    buffers, sizes = np.asarray([1, 2] * 6, np.int64), np.full(12, 4.0)
    all_read = Accesses(buffers, sizes, np.full(6, 2), np.zeros(6, np.int64))
    assert repeats(all_read) == [Repeat(0, 1, 6)]
    sometimes = np.asarray([2, 1, 2, 2, 1, 1])
    assert repeats(Accesses(buffers, sizes, sometimes, 2 - sometimes)) == []


def test_digests_alone_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_digests", lambda touched: np.zeros(len(touched.reads), np.uint64))
    assert repeats(step(1, 2, 3, 4, 5, 6)) == []
    assert repeats(step(*(1,) * 6)) == [Repeat(0, 1, 6)]


def test_a_short_loop_is_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST", 4)
    assert repeats(step(*(1, 2) * 3)) == [Repeat(0, 2, 3)]  # saves four ops
    assert repeats(step(*(1,) * 4)) == []  # saves three


OPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPS, OPS.filter(bool), st.integers(3, 9), OPS, st.integers(1, 30))
def test_folded_turns_move_what_they_move_one_by_one(
    before: list[tuple[int, int]], turn: list[tuple[int, int]], turns: int, behind: list[tuple[int, int]], cache: int
) -> None:
    """Each op reads one buffer and writes one, of as many bytes as their number plus one."""
    pairs = np.asarray([*before, *turn * turns, *behind], np.int64)
    whole = Accesses(pairs.ravel(), pairs.ravel() + 1.0, *np.ones((2, len(pairs)), np.int64))
    stays, reads_like, writes_like = module.fold_repeats(whole)
    assert len(stays) < len(pairs)

    def moved(some: Accesses) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        touches = touch_pieces(some, cache)
        misses = find_misses(touches, cache)
        columns = misses & ~touches.written, find_write_backs(touches, misses)
        read, written = (np.bincount(touches.op, touches.bytes * each, len(some.reads)) for each in columns)
        return read, written

    (read, written), (read_folded, written_folded) = moved(whole), moved(whole.of(stays))
    np.testing.assert_allclose(read_folded[reads_like], read)
    np.testing.assert_allclose(written_folded[writes_like], written)
