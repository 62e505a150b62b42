"""When a parallel thunk ran that ended after its event, and when it only waited for a thread. Times are in ps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.timing.executor import Owned, time_steps
from roofline.traces import intervals
from roofline.traces.xplane.marks import with_marks
from roofline.traces.xplane.reader import Line, XTrace
from roofline.xla.tails import tails


class Thunk(NamedTuple):
    """An event on a thread, and, where it ended later, when and on which thread that was."""

    thread: int
    start: int
    end: int
    done: int | None = None
    done_on: int = 0


def traced(thunks: list[Thunk]) -> XTrace:
    """A trace of thunks, each of an instruction of its own, with their ends behind them."""
    late = [number for number, thunk in enumerate(thunks) if thunk.done is not None]
    size, both = len(thunks), len(thunks) + len(late)
    done = [thunks[number].done for number in late]
    absent = np.full(both, -1)
    return XTrace(
        start=np.asarray([thunk.start for thunk in thunks] + done, np.int64),
        end=np.asarray([thunk.end for thunk in thunks] + done, np.int64),
        name=np.asarray([*range(size), *(size + number for number in late)], np.int32),
        line=np.asarray([thunk.thread for thunk in thunks] + [thunks[number].done_on for number in late], np.int32),
        hlo_op=np.asarray([*range(size), *(-1 for _ in late)], np.int32),
        program=np.zeros(both, np.int64),
        run=np.zeros(both, np.int64),
        produces=np.asarray([100 + number for number in range(size)] + [-1] * len(late), np.int64),
        consumes=np.asarray([-1] * size + [100 + number for number in late], np.int64),
        scope=absent,
        bytes=absent,
        graph=np.zeros(both, np.int64),
        names=(*(f"op.{number}" for number in range(size)), *(f"end: op.{number}" for number in range(size))),
        lines=tuple(Line("/host:CPU", f"tf_XLAEigen/{number}") for number in range(4)),
        modules={},
        origin=None,
        warnings=(),
    )


def times(thunks: list[Thunk]) -> tuple[list[int], list[float]]:
    """Each op's own time and its share of the time in which any ran [ps]."""
    trace = traced(thunks)
    rows = np.arange(len(thunks))
    found = tails(trace, rows)
    size = len(trace.start)
    op, end = np.full(size, -1), trace.end.copy()
    op[rows], end[rows] = rows, found.end
    owned = Owned(op=op, start=trace.start, end=end, lost=np.zeros(size, bool), waits=found.waits)
    marked = with_marks(trace, [(0, int(end.max()) + 1)], "step")
    padded = {
        "op": np.append(owned.op, -1),
        "start": np.append(owned.start, 0),
        "end": np.append(owned.end, 0),
        "lost": np.append(owned.lost, False),
    }
    (timed,) = time_steps(marked, Owned(**padded, waits=found.waits), len(thunks), "step", 0.0)
    own = np.rint(timed.own[:, 0] * 1e12)
    return own.astype(int).tolist(), ((timed.own[:, 0] - timed.overlap) * 1e12).tolist()


def test_what_waits_for_the_only_thread_does_not_run() -> None:
    """A copy that begins first on the caller's thread 0 and is ended by thread 1, behind two products there.

    It ran for 2 in its event, and from 110, when the second product ended, to 112.
    """
    own, shares = times([Thunk(0, 0, 2, done=112, done_on=1), Thunk(1, 2, 50), Thunk(1, 50, 110)])
    assert own == [4, 48, 60]
    assert shares == pytest.approx([4, 48, 60])


def test_what_runs_beside_others_shares_with_them() -> None:
    """A product whose last part thread 1 did, with nothing else there, beside a fusion on thread 2."""
    own, shares = times([Thunk(1, 0, 2, done=42, done_on=1), Thunk(2, 12, 32)])
    assert own == [42, 20]
    assert shares == pytest.approx([12 + 20 / 2 + 10, 20 / 2])


def test_it_is_ended_inside_what_waits_for_it() -> None:
    """An event that is still open at the end only waited there: the part was done inside it."""
    own, _ = times([Thunk(0, 0, 2, done=30, done_on=1), Thunk(1, 10, 40)])
    assert own == [30, 30]


def test_a_loops_event_holds_what_it_waits_for() -> None:
    """The event of a loop on thread 1 covers that of a product of its body, whose tail runs there too."""
    own, _ = times([Thunk(1, 0, 100), Thunk(1, 10, 12, done=60, done_on=1), Thunk(1, 20, 30)])
    assert own[1:] == [2 + (20 - 12) + (60 - 30), 10]


@st.composite
def runs(draw: st.DrawFn) -> list[Thunk]:
    """Thunks on up to three threads, one after another on each, some of which end later on some thread."""
    thunks: list[Thunk] = []
    for thread in range(draw(st.integers(1, 3))):
        at = 0
        for _ in range(draw(st.integers(1, 5))):
            start = at + draw(st.integers(0, 9))
            at = start + draw(st.integers(1, 9))
            done = draw(st.none() | st.integers(at, at + 40))
            thunks.append(Thunk(thread, start, at, done, draw(st.integers(0, 2))))
    return thunks


@given(runs())
def test_nothing_is_lost_and_nothing_runs_where_it_cannot(thunks: list[Thunk]) -> None:
    """The shares add up to the time in which any thunk was begun and not done; own time is within that of the op."""
    own, shares = times(thunks)
    done = [max(thunk.end, thunk.done or 0) for thunk in thunks]
    begun = np.asarray([thunk.start for thunk in thunks])
    assert sum(shares) == pytest.approx(intervals.length(begun, np.asarray(done)))
    for thunk, time, last in zip(thunks, own, done, strict=True):
        assert thunk.end - thunk.start <= time <= last - thunk.start
        waited = sum(
            max(0, other.end - max(other.start, thunk.end))
            for other in thunks
            if other is not thunk and other.thread == thunk.done_on and other.end <= last
        )
        if last > thunk.end:
            assert time == last - thunk.start - waited
