"""Times of ops from the events of an executor, on traces made by hand. All times in microseconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from roofline.timing.async_dispatch import is_async
from roofline.timing.executor import Owned, aligned, time_steps, windows
from roofline.timing.timed import HOST_DISPATCH, PYTHON, merge
from roofline.traces.xplane.reader import Line, XTrace

US = 10**6  # [ps]
LINES = Line("/host:CPU", "python"), Line("/host:CPU", "pool")


def trace(*events: tuple[str, float, float], lines: tuple[Line, ...] = (Line("/host:CPU", "python"),)) -> XTrace:
    """Events (name, start, end) on one line."""
    names = tuple(dict.fromkeys(name for name, _, _ in events))
    size = len(events)
    absent = {name: np.full(size, -1, np.int64) for name in ("produces", "consumes", "bytes")}
    return XTrace(
        start=np.asarray([start * US for _, start, _ in events], np.int64),
        end=np.asarray([end * US for _, _, end in events], np.int64),
        name=np.asarray([names.index(name) for name, _, _ in events], np.int32),
        line=np.zeros(size, np.int32),
        hlo_op=np.full(size, -1, np.int32),
        program=np.zeros(size, np.int64),
        run=np.zeros(size, np.int64),
        scope=np.full(size, -1, np.int32),
        graph=np.zeros(size, np.int64),
        names=names,
        lines=lines,
        modules={},
        origin=0,
        warnings=(),
        **absent,
    )


def owned(made: XTrace, ops: list[int], **more: Any) -> Owned:
    op = np.asarray(ops, np.int64)
    return Owned(op=op, start=made.start, end=made.end, lost=op == -2, **more)


def test_two_ops_beside_each_other_share_the_time() -> None:
    made = trace(("s#0", 0, 100), ("a", 10, 50), ("b", 30, 70))
    (step,) = time_steps(made, owned(made, [-1, 0, 1]), 2, "s", 0.0)
    assert step.own[:, 0] == pytest.approx([40e-6, 40e-6])
    # 20 us alone each, and 20 us together, of which each gets half: overlap = own - share = 10 us.
    assert step.overlap == pytest.approx([10e-6, 10e-6])
    assert step.idle[0] == pytest.approx(40e-6)
    assert step.start == pytest.approx([10e-6, 30e-6])
    assert step.walls[0] == pytest.approx(100e-6)


def test_an_op_that_runs_twice_has_both_times() -> None:
    made = trace(("s#0", 0, 100), ("a", 0, 10), ("a", 20, 50))
    (step,) = time_steps(made, owned(made, [-1, 0, 0]), 1, "s", 0.0)
    assert step.own[0, 0] == pytest.approx(40e-6)


def test_what_began_outside_the_step_is_not_in_it() -> None:
    made = trace(("a", 0, 20), ("s#0", 10, 100), ("a", 30, 40), ("a", 100, 120))
    (step,) = time_steps(made, owned(made, [0, -1, 0, 0]), 1, "s", 0.0)
    assert step.own[0, 0] == pytest.approx(10e-6)


def test_idle_time_is_the_frameworks_or_pythons() -> None:
    made = trace(("s#0", 0, 100), ("call", 20, 80), ("a", 30, 60))
    (step,) = time_steps(made, owned(made, [-1, -1, 0]), 1, "s", 0.0)
    # The op runs 30 us of the 60 in which the framework does; 40 us belong to neither.
    assert step.causes == pytest.approx({HOST_DISPATCH: 30e-6, PYTHON: 40e-6})
    # Before the op 20 us of Python and 10 us of the call; the 40 us after it are before none.
    assert step.host == pytest.approx(np.asarray([[10e-6, 20e-6]]))


def test_events_cost_and_never_more_than_there_is() -> None:
    made = trace(("s#0", 0, 100), ("a", 10, 50), ("b", 50, 70))
    (step,) = time_steps(made, owned(made, [-1, 0, 1]), 2, "s", 5e-6)
    assert step.events == 3
    assert step.corrected[0] == pytest.approx(85e-6)  # 100 - 3 x 5
    # 25 us of 40 us of idle time are left, so 10 us before the first op are 6.25
    assert step.host == pytest.approx(np.asarray([[0, 6.25e-6], [0, 0]]))
    (step,) = time_steps(made, owned(made, [-1, 0, 1]), 2, "s", 1e-3)
    assert step.corrected[0] == pytest.approx(60e-6)  # the ops' own time


def test_what_a_gpu_did_is_not_made_shorter_by_what_events_cost_the_host() -> None:
    made = trace(("s#0", 0, 100), ("a", 10, 50), ("b", 50, 70))
    (step,) = time_steps(made, owned(made, [-1, 0, 1], device=True), 2, "s", 5e-6)
    assert step.corrected[0] == step.walls[0] == pytest.approx(100e-6)
    assert step.idle[0] == pytest.approx(40e-6)  # 100 - 40 - 20


def test_lost_events_have_rows_of_their_own_and_steps_get_the_same_ones() -> None:
    made = trace(("s#0", 0, 50), ("x", 0, 10), ("a", 10, 30), ("s#1", 50, 100), ("y", 50, 70), ("a", 70, 100))
    steps = time_steps(made, owned(made, [-1, -2, 0, -1, -2, 0]), 1, "s", 0.0)
    assert [step.extra for step in steps] == [("x",), ("y",)]
    assert [step.joined for step in steps] == pytest.approx([20 / 30, 30 / 50])
    both = aligned(steps, 1)
    assert [step.extra for step in both] == [("x", "y")] * 2
    assert both[0].own[:, 0] == pytest.approx([20e-6, 10e-6, 0])
    assert both[1].own[:, 0] == pytest.approx([30e-6, 0, 20e-6])
    merged = merge(both, 50e-6)
    assert merged.own.shape == (3, 2)
    assert merged.extra == ("x", "y")


def test_a_step_without_any_event_gets_the_rows_of_others() -> None:
    made = trace(("s#0", 0, 50), ("s#1", 50, 100), ("y", 50, 70))
    empty, other = aligned(time_steps(made, owned(made, [-1, -1, -2]), 0, "s", 0.0), 0)
    assert [step.extra for step in (empty, other)] == [("y",)] * 2
    assert (empty.own.tolist(), empty.kernels) == ([[0.0]], [()])
    assert other.own[:, 0] == pytest.approx([20e-6])


def test_an_op_that_a_step_did_not_run_is_unseen() -> None:
    made = trace(("s#0", 0, 50), ("a", 10, 30))
    (step,) = time_steps(made, owned(made, [-1, 0]), 2, "s", 0.0)
    assert step.unseen == 1
    assert step.own[1, 0] == 0


def test_beside_a_gpu_kernels_are_kept_by_name() -> None:
    made = trace(("s#0", 0, 100), ("gemm", 0, 20), ("reduce", 20, 25), ("gemm", 30, 50), ("copy", 60, 70))
    (step,) = time_steps(made, owned(made, [-1, 0, 0, 0, 1], device=True), 2, "s", 0.0)
    names = [[(step.kernel_names[code], time) for code, time in one] for one in step.kernels]
    assert names == [[("gemm", 40_000), ("reduce", 5_000)], [("copy", 10_000)]]
    assert step.launches is not None
    assert step.launches.tolist() == [3, 1]


def test_windows_are_the_marks_in_order() -> None:
    made = trace(("s#1", 50, 100), ("s#0", 0, 50), ("set#0", 0, 10), ("s", 0, 1))
    assert windows(made, "s") == [(0, 50 * US), (50 * US, 100 * US)]
    assert windows(trace(("a", 0, 1)), "s") == []


@pytest.mark.parametrize(("lines", "found"), [((0, 1, 1), True), ((0, 0, 1), True), ((0, 1, 0), False)])
def test_ops_on_the_thread_of_the_marks_are_not_elsewhere(lines: tuple[int, ...], found: bool) -> None:
    # Two ops of 2 and of 40 us: on the thread that dispatches the first is 2 of 42 us, 4.8 %, and the second most.
    made = replace(trace(("s#0", 0, 100), ("a", 10, 12), ("b", 30, 70), lines=LINES), line=np.asarray(lines, np.int32))
    assert is_async(made, owned(made, [-1, 0, 1]), "s") == found


def test_what_runs_outside_of_the_steps_says_nothing() -> None:
    made = replace(trace(("s#0", 0, 20), ("a", 10, 12), ("b", 30, 70), lines=LINES), line=np.asarray((0, 1, 0)))
    assert is_async(made, owned(made, [-1, 0, 1]), "s")
