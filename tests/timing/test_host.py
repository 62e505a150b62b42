"""Idle time before each op, on intervals made by hand and at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.timing import host
from roofline.timing.idle import CAUSES, LABELS, Idle
from roofline.traces import intervals


def columns(*rows: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(column, np.int64) for column in zip(*rows, strict=True))


def test_what_ends_a_gap_has_it_and_the_framework_is_told_from_python() -> None:
    # 0..10 is before op 0, of it 4..10 in an event; 20..50 before op 1, of it 30..35 and 45..50; 60..100 before none
    ops = columns((10, 20, 0), (50, 60, 1))
    found = host.gaps(*ops, 2, 0, 100).time(*columns((4, 12), (30, 35), (45, 55)))
    assert found.tolist() == [[6, 4], [10, 20]]


def test_an_op_that_starts_beside_another_waited_for_nothing() -> None:
    ops = columns((10, 40, 0), (20, 30, 1), (60, 70, 0))
    found = host.gaps(*ops, 2, 0, 100).time(*columns((0, 5)))
    # Op 0 runs twice: 0..10 and 40..60 are before it.
    assert found.tolist() == [[5, 25], [0, 0]]


def test_events_are_counted_where_they_begin() -> None:
    ops = columns((10, 20, 0), (50, 60, 1))
    began = np.asarray([4, 10, 30, 50, 55, 70]), np.asarray([False, True, False, False, True, False])
    # Before op 0: one of Python's (4) and its own, nested (10). Before op 1: 30 and its own, 50. Not: 55, 70.
    assert host.gaps(*ops, 2, 0, 100).events(*began).tolist() == [[1, 1], [0, 2]]


def test_a_device_that_idles() -> None:
    labels = [LABELS.index(name) for name in ("Python between ops", "op dispatch", "after a blocking call")]
    gaps = Idle(
        start=np.asarray([0, 100, 300]),
        end=np.asarray([40, 170, 900]),
        window=np.zeros(3, np.int64),
        cause=np.asarray([CAUSES.index(name) for name in ("host dispatch", "host dispatch", "synchronisation")]),
        detail=np.asarray(labels),
        ended_by=np.asarray([0, 1, -1]),
        of=np.asarray([-1, -1, -1]),
    )
    # Both events are of op 1; two steps: (40, 70) / 2 ns, and what no event ends is before none.
    assert gaps.before_kernels(np.asarray([1, 1]), 2, 2) == pytest.approx(np.asarray([[0, 0], [35e-9, 20e-9]]))


SPANS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 20)), max_size=12)


@given(SPANS, SPANS)
def test_idle_time_is_before_an_op_or_after_all_of_them(ran: list[tuple[int, int]], framework: list[tuple[int, int]]):
    spans = [
        np.asarray([(low, low + length) for low, length in some], np.int64).reshape(-1, 2) for some in (ran, framework)
    ]
    (start, end), others = spans[0].T, tuple(spans[1].T)
    found = host.gaps(start, end, np.arange(len(start)), len(start), 0, 130).time(*others)
    last = max((high for low, high in spans[0].tolist() if high > low), default=0)
    assert found.sum() == 130 - intervals.length(start, end) - (130 - last)
    busy_or_framework = intervals.length(np.append(start, others[0]), np.append(end, others[1]))
    outside = 130 - busy_or_framework
    assert found[:, 1].sum() <= outside
    assert (found >= 0).all()
