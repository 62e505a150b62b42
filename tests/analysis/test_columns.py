"""Numbers of rows, against what they mean: equal numbers where and only where all columns are equal."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roofline.analysis.caches.accesses import Accesses
from roofline.analysis.columns import first_rows, numbered, often


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1e9]), st.integers(-2, 2))))
def test_rows_have_one_number_where_all_columns_are_equal(rows: list[tuple[int, float, int]]) -> None:
    columns = np.asarray(rows, np.float64).reshape(-1, 3).T
    number, first = numbered(columns[0].astype(np.int64), columns[1], columns[2].astype(np.int64))
    # in order of what the rows hold, and each number at the first row that has it
    distinct = sorted(set(rows))
    assert number.tolist() == [distinct.index(row) for row in rows]
    assert first.tolist() == [rows.index(row) for row in distinct]
    assert first_rows(number).tolist() == first.tolist()
    # in order of the rows, and how many are equal: a Counter keeps the order of what it met first
    assert often(*columns) == [(rows.index(row), many) for row, many in Counter(rows).items()]


@given(st.lists(st.integers(0, 5)), st.sampled_from([1, 7, 10**12, -1]))
def test_buffers_are_numbered_without_a_hole_however_large_their_numbers(buffers: list[int], apart: int) -> None:
    none = np.zeros(0, np.int64)
    touched = Accesses(np.asarray(buffers, np.int64) * apart, np.zeros(0), none, none)
    distinct = sorted({buffer * apart for buffer in buffers})
    assert touched.numbered.tolist() == [distinct.index(buffer * apart) for buffer in buffers]
