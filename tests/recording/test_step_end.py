"""When a step ended whose results are waited for, by a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from roofline.recording.xspace import step_end
from roofline.recording.xspace.step_end import run_to_end
from roofline.traces.annotations import STEP
from roofline.traces.xplane import marks
from roofline.traces.xplane.reader import Line, XTrace

CALL, LOOK_UP, WAIT = 3.0, 5.0, 2.0


class Framework:
    """Calls take 3, looking up what to wait for 5, and waiting for what is there 2 [s]; all is there at `ready`."""

    def __init__(self, ready: float) -> None:
        self.now, self.ready = 0.0, ready
        self.marked: list[float] = []

    def run(self) -> None:
        self.now += CALL

    def waiter(self, outputs: object) -> Callable[[], None]:
        self.now += LOOK_UP

        def wait() -> None:
            self.now = max(self.now, self.ready) + WAIT

        return wait

    @contextmanager
    def mark(self) -> Iterator[None]:
        yield
        self.marked.append(self.now)


@pytest.mark.parametrize(
    ("ready", "seconds"),
    [
        (2.0, 3.0),  # before the call returned
        (30.0, 30.0),  # while it was waited for
        (6.0, 3.0),  # while it was looked up what to wait for: not seen, and taken for the first
    ],
)
def test_a_step_ends_when_its_results_are_there(ready: float, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = Framework(ready)
    monkeypatch.setattr(step_end.time, "perf_counter", lambda: framework.now)
    ended = run_to_end(framework.run, framework, framework.mark)  # type: ignore[arg-type]
    assert ended.seconds == seconds
    assert ended.waited == seconds - CALL
    assert framework.marked == [ended.seconds + ended.notice_delay], "waiting again is no part of what is marked"


def trace(*events: tuple[str, int, int], program: tuple[bool, ...]) -> XTrace:
    names = tuple(dict.fromkeys(name for name, _, _ in events))
    size = len(events)
    columns = {name: np.full(size, -1) for name in ("hlo_op", "produces", "consumes", "scope", "bytes")}
    columns |= {name: np.zeros(size, np.int64) for name in ("line", "program", "run", "graph")}
    columns["hlo_op"] = np.where(program, 0, -1)
    columns["name"] = np.asarray([names.index(name) for name, _, _ in events])
    columns["start"], columns["end"] = np.asarray([times for _, *times in events], np.int64).T
    return XTrace(names=names, lines=(Line("/host:CPU", "python"),), modules={}, origin=None, warnings=(), **columns)  # type: ignore[arg-type]


def test_marks_end_as_much_sooner_but_not_before_what_ran_in_them() -> None:
    made = trace(
        (f"{STEP}#0", 0, 100),
        ("dot", 10, 60),
        (f"{STEP}#1", 200, 300),
        ("dot", 210, 295),
        ("wait", 220, 299),
        program=(False, True, False, True, False),
    )
    ends = marks.shortened(made, STEP, [30e-12, 30e-12]).end.tolist()
    assert ends == [70, 60, 295, 295, 299]
    assert marks.shortened(made, STEP, [30e-12]) is made, "a trace that lost a step says nothing of which"
