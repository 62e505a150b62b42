"""Unions, gaps and shares against counting on a small grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.traces import intervals

OWNERS = 4
rows = st.lists(st.tuples(st.integers(-5, 15), st.integers(-1, 8), st.integers(0, OWNERS - 1)), max_size=25)


def columns(rows):
    start, length, owner = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return start, start + length, owner


def cells(start, end):
    """The unit cells that the intervals cover."""
    return {t for a, b in zip(start.tolist(), end.tolist(), strict=True) for t in range(a, b)}


@given(rows)
def test_union_covers_the_same_cells_disjointly(rows):
    start, end, _ = columns(rows)
    opens, closes = intervals.union(start, end)
    assert cells(opens, closes) == cells(start, end)
    assert (closes > opens).all()
    assert (opens[1:] > closes[:-1]).all()
    assert intervals.length(start, end) == len(cells(start, end))


@given(rows, st.integers(-8, 20), st.integers(0, 20))
def test_complement_covers_the_rest_of_the_window(rows, low, width):
    start, end, _ = columns(rows)
    opens, closes = intervals.complement(start, end, low, low + width)
    assert cells(opens, closes) == set(range(low, low + width)) - cells(start, end)
    assert (opens[1:] > closes[:-1]).all()


@given(rows)
def test_shares_split_each_cell_among_the_owners_that_run(rows):
    start, end, owner = columns(rows)
    expected = np.zeros(OWNERS)
    for cell in cells(start, end):
        running = {o for a, b, o in zip(start, end, owner, strict=True) if a <= cell < b}
        for one in running:
            expected[one] += 1 / len(running)
    np.testing.assert_allclose(intervals.shares(start, end, owner, OWNERS), expected, atol=1e-12)


@given(rows)
def test_own_is_the_union_of_each_owner(rows):
    start, end, owner = columns(rows)
    expected = [len(cells(start[owner == one], end[owner == one])) for one in range(OWNERS)]
    assert intervals.own(start, end, owner, OWNERS).tolist() == expected


@given(rows, st.randoms(use_true_random=False))
def test_shares_add_up_stay_below_own_and_ignore_the_order(rows, random):
    start, end, owner = columns(rows)
    shares = intervals.shares(start, end, owner, OWNERS)
    assert shares.sum() == pytest.approx(intervals.length(start, end), abs=1e-9)
    assert (shares <= intervals.own(start, end, owner, OWNERS) + 1e-9).all()
    random.shuffle(rows)
    np.testing.assert_allclose(intervals.shares(*columns(rows), OWNERS), shares, atol=1e-12)


def test_two_streams_share_what_they_overlap():
    # Owner 0: 0-10 and 4-6 (within); owner 1: 6-14. Cells 6-10 are shared by two.
    start, end, owner = np.array([0, 4, 6]), np.array([10, 6, 14]), np.array([0, 0, 1])
    assert intervals.shares(start, end, owner, 3).tolist() == [6 + 4 / 2, 4 + 4 / 2, 0]
    assert intervals.own(start, end, owner, 3).tolist() == [10, 8, 0]


def test_floats_work_as_well():
    start, end = np.array([0.0, 0.25]), np.array([0.5, 1.0])
    assert intervals.length(start, end) == 1.0
    assert [x.tolist() for x in intervals.complement(start, end, -1.0, 2.0)] == [[-1.0, 1.0], [0.0, 2.0]]


def test_nothing_is_covered_by_nothing():
    empty = np.zeros(0, np.int64)
    assert intervals.length(empty, empty) == 0
    assert intervals.shares(empty, empty, empty, 2).tolist() == [0, 0]
    assert [x.tolist() for x in intervals.complement(empty, empty, 3, 7)] == [[3], [7]]
    assert [x.tolist() for x in intervals.complement(empty, empty, 3, 3)] == [[], []]


def test_what_of_some_times_is_covered():
    start, end = np.array([10, 15, 40]), np.array([20, 30, 50])
    # 10..30 and 40..50: of 0..5 nothing, of 5..12 2, of 25..45 5 + 5, of 0..60 all 30
    low, high = np.array([0, 5, 25, 0]), np.array([5, 12, 45, 60])
    assert intervals.covered(start, end, low, high).tolist() == [0, 2, 10, 30]
