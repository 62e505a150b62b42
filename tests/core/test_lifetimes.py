"""What buffers hold, from the op that makes each to the last that uses it, by hand."""

from __future__ import annotations

import numpy as np

from roofline.core.lifetimes import lifetimes


def lives(*ops: tuple[list[tuple[int, float]], list[tuple[int, float]]]) -> list[tuple[object, ...]]:
    """Follow ops, each with what it reads and what it writes: (buffer, bytes)."""
    accesses = [
        (op, buffer, size, written)
        for op, (reads, writes) in enumerate(ops)
        for written, touched in ((False, reads), (True, writes))
        for buffer, size in touched
    ]
    op, buffer, size, written = np.asarray(accesses, float).reshape(-1, 4).T
    found = lifetimes(op.astype(np.int64), buffer.astype(np.int64), size, written > 0)
    columns = (found.bytes, found.first, found.last, found.made, found.read)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_buffer_that_is_written_anew_holds_something_else():
    """Op 0 makes 7, op 1 reads it, op 2 writes it without reading it: two lives, the first one's size its largest."""
    assert lives(([], [(7, 4.0)]), ([(7, 6.0)], [(8, 1.0)]), ([(8, 1.0)], [(7, 2.0)])) == [
        (6.0, 0, 1, True, True),
        (1.0, 1, 2, True, True),
        (2.0, 2, 2, True, False),
    ]


def test_what_an_op_reads_and_writes_stays_the_same():
    """In place at op 1, and written twice by op 2, which did not read it: one new life there, not two."""
    assert lives(([], [(3, 4.0)]), ([(3, 4.0)], [(3, 4.0)]), ([], [(3, 4.0), (3, 8.0)])) == [
        (4.0, 0, 1, True, True),
        (8.0, 2, 2, True, False),
    ]


def test_what_was_there_before_stays_whoever_writes_it():
    assert lives(([(5, 4.0)], []), ([], [(5, 4.0)]), ([], [(5, 9.0)])) == [(9.0, 0, 2, False, True)]


def test_a_step_that_touches_nothing_holds_nothing():
    assert lives(([], [])) == []
