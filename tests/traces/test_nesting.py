"""Parents of nested intervals against a stack that takes them one at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roofline.traces import nesting


def parents_by_stack(thread, start, end, order):
    """The same rule as nesting.parents, one interval at a time."""
    result = [-1] * len(start)
    stack, current = [], None
    for row in sorted(range(len(start)), key=lambda i: (thread[i], start[i], -end[i], order[i])):
        if thread[row] != current:
            stack, current = [], thread[row]
        while stack and end[stack[-1]] < end[row]:
            stack.pop()
        if stack:
            result[row] = stack[-1]
        stack.append(row)
    return result


def innermost_by_search(thread, start, end, order, query_thread, query_start, query_end):
    """Of the intervals that hold the query, the one that comes last in the order of nesting."""
    result = []
    for where, low, high in zip(query_thread, query_start, query_end, strict=True):
        holding = [i for i in range(len(start)) if thread[i] == where and start[i] <= low and end[i] >= high]
        key = lambda i: (start[i], -end[i], order[i])  # noqa: E731
        result.append(max(holding, key=key) if holding else -1)
    return result


@st.composite
def nested(draw):
    """Properly nested intervals on up to three threads, on a small grid so that times often collide."""
    rows = []

    def fill(thread, low, high, depth):
        at = low
        for _ in range(draw(st.integers(0, 3 if depth < 4 else 0))):
            start = draw(st.integers(at, high))
            end = draw(st.integers(start, high))
            rows.append((thread, start, end, len(rows)))
            fill(thread, start, end, depth + 1)
            at = end

    for thread in range(draw(st.integers(1, 3))):
        fill(thread, 0, draw(st.integers(0, 12)), 0)
    rows = draw(st.permutations(rows))
    return (
        tuple(np.array(column, np.int64) for column in zip(*rows, strict=True))
        if rows
        else (np.zeros(0, np.int64),) * 4
    )


@st.composite
def scattered(draw):
    """Intervals that may overlap in any way."""
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), max_size=30))
    thread, start, length = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    return thread, start, start + length, np.arange(len(rows))


@given(nested() | scattered())
def test_parents_are_those_of_a_stack(intervals):
    assert nesting.parents(*intervals).tolist() == parents_by_stack(*intervals)


@given(nested(), st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 13), st.integers(0, 3)), max_size=20))
def test_innermost_is_the_last_that_holds_the_query(intervals, queries):
    where, low, length = (np.array([query[i] for query in queries], np.int64) for i in range(3))
    found = nesting.innermost(*intervals, where, low, low + length)
    assert found.tolist() == innermost_by_search(*intervals, where, low, low + length)
    at_a_time = nesting.innermost(*intervals, where, low)
    assert at_a_time.tolist() == innermost_by_search(*intervals, where, low, low)


@given(nested())
def test_depth_counts_ancestors(intervals):
    parent = nesting.parents(*intervals)
    expected = []
    for row in range(len(parent)):
        depth = 0
        while parent[row] >= 0:
            row, depth = parent[row], depth + 1
        expected.append(depth)
    assert nesting.depths(parent).tolist() == expected


@given(nested(), st.data())
def test_nearest_and_outermost_marked(intervals, data):
    parent = nesting.parents(*intervals)
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=len(parent), max_size=len(parent))), bool)
    near, far = [], []
    for row in range(len(parent)):
        found = []
        while row >= 0:
            if marked[row]:
                found.append(row)
            row = parent[row]
        near.append(found[0] if found else -1)
        far.append(found[-1] if found else -1)
    assert nesting.nearest(parent, marked).tolist() == near
    assert nesting.outermost(parent, marked).tolist() == far


def test_children_are_counted():
    # 0 holds 1 and 3; 1 holds 2.
    parent = nesting.parents(*(np.array(c) for c in ([0] * 4, [0, 1, 2, 6], [9, 5, 3, 8], [0, 1, 2, 3])))
    assert parent.tolist() == [-1, 0, 1, 0]
    assert nesting.children_count(parent).tolist() == [2, 1, 0, 0]
    assert nesting.depths(parent).tolist() == [0, 1, 2, 1]


@given(st.lists(st.integers(-5, 5)))
def test_distinct_values_are_sorted(values):
    assert nesting.distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


def test_equal_intervals_nest_by_order():
    parent = nesting.parents(*(np.array(c) for c in ([0, 0, 0], [5, 5, 5], [5, 5, 5], [2, 0, 1])))
    assert parent.tolist() == [2, -1, 1]


def test_neighbours_and_intervals_that_cross_are_no_relations():
    # The second begins where the first ends; the third crosses the second.
    parent = nesting.parents(*(np.array(c) for c in ([0] * 3, [0, 10, 15], [10, 20, 25], [0, 1, 2])))
    assert parent.tolist() == [-1, -1, -1]


def test_times_may_fill_63_bits():
    late = 2**62
    columns = [np.array(c, np.int64) for c in ([0, 7], [late, late], [late + 9, late + 9], [0, 1])]
    found = nesting.innermost(*columns, np.array([7, 0, 3]), np.array([late + 1, late + 10, late]))
    assert found.tolist() == [1, -1, -1]


def test_a_deep_stack_is_no_burden():
    n = 50_000
    rows = np.arange(n)
    parent = nesting.parents(np.zeros(n, np.int64), rows, 2 * n - rows, rows)
    assert parent.tolist() == list(range(-1, n - 1))
    assert nesting.depths(parent)[-1] == n - 1


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=12))
def test_ranges_around_any_time_are_found_at_once(ranges):
    """Ranges that may overlap without holding each other."""
    start = np.array([low for low, _ in sorted(ranges)], np.int64)
    end = np.array([low + length for low, length in sorted(ranges)], np.int64)
    found = nesting.Innermost(start, end)
    thread, order, times = np.zeros(len(start), np.int64), np.arange(len(start)), range(-1, 32)
    expected = innermost_by_search(thread, start, end, order, [0] * 33, times, times)
    assert [found.at(time) for time in times] == expected
