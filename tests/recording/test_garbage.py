"""What a step leaves in cycles is collected between steps, and in none."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest
import torch

from roofline.backends.torch import BACKEND
from roofline.core.step import Step
from roofline.recording import record
from roofline.recording.garbage import collect_if_due, kept_out
from roofline.recording.recording import Plan


class Cycle:
    """An object that holds itself, and so many lists."""

    def __init__(self, lists: int) -> None:
        self.itself, self.lists = self, [[0] for _ in range(lists)]


@pytest.fixture(scope="module", autouse=True)
def _as_often_as_usual() -> Iterator[None]:
    """The thresholds of a Python that nobody has changed, which those of tests are not."""
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)


def test_nothing_is_collected_but_between_steps() -> None:
    due, enabled, frozen = gc.get_threshold()[0] + 1, gc.isenabled(), gc.get_freeze_count()
    assert due > 1
    with kept_out(0.0):
        held = weakref.ref(Cycle(10 * due))
        assert held() is not None  # ten times as many objects as Python lets pass
        collect_if_due()
        assert held() is None
        held = weakref.ref(Cycle(0))
        collect_if_due()
        assert held() is not None  # so few objects that Python would not, either
    assert gc.isenabled() == enabled
    # What others had frozen may have been let go meanwhile.
    assert gc.get_freeze_count() <= frozen


#: For each length of a step: a cycle from before the steps, which is let go within one.
ASKS = """
import gc, weakref
from roofline.recording.garbage import _include_all, collect_if_due, kept_out

class Cycle:
    def __init__(self, lists):
        self.itself, self.lists = self, [[0] for _ in range(lists)]

for step in (0.0, 10.0):
    due, cycle = gc.get_threshold()[0] + 1, Cycle(0)
    held = weakref.ref(cycle)
    assert gc.get_freeze_count() == 0
    with kept_out(step):
        del cycle
        lists = [[0] for _ in range(2 * due)]
        if not step:  # in long steps Python collects by itself
            collect_if_due()
            assert held() is not None
        gc.collect()
        assert held() is None, step
        if not step:  # and what comes after it is collected as before
            later = weakref.ref(Cycle(10 * due))
            collect_if_due()
            assert later() is None
    assert _include_all not in gc.callbacks, step
    assert len(lists) == 2 * due
"""


def test_a_collection_that_the_step_asks_for_looks_at_all_there_is() -> None:
    """What is due leaves it, gc.collect() does not: in a process that has frozen nothing, as these tests have."""
    ended = subprocess.run([sys.executable, "-c", ASKS], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_long_steps_collect_as_always() -> None:
    with kept_out(10.0):
        held = weakref.ref(Cycle(0))
        Cycle(10 * gc.get_threshold()[0])
        assert held() is None


def test_a_program_without_a_collector_keeps_its_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    thresholds = gc.get_threshold()
    with kept_out(0.0):
        held = weakref.ref(Cycle(10 * thresholds[0]))
        gc.set_threshold(0)
        try:
            collect_if_due()
            assert held() is not None
        finally:
            gc.set_threshold(*thresholds)
    # And one that was switched off, or froze what it has, has both as before.
    gc.disable()
    try:
        with kept_out(0.0):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        with kept_out(0.0):
            pass
        assert gc.get_freeze_count() > 0.9 * frozen > 0  # a few of them may end meanwhile, of whatever tests ran before
    finally:
        gc.unfreeze()
        gc.freeze()  # as it was, or each collection of the next tests looks at all that was imported


def test_steps_do_not_pile_up_what_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})
    left: list[weakref.ref[Cycle]] = []
    most, x = 0, torch.ones(64, 64)

    def run() -> torch.Tensor:
        nonlocal most
        left.append(weakref.ref(Cycle(1000)))
        most = max(most, sum(one() is not None for one in left))
        return x @ x

    BACKEND.recorder.record(
        Step(run=run), Plan(device="cpu", threads=1, steps=40, profiled_steps=2, in_process=True), lambda text: None
    )
    # Those of the steps that settle before a profiled one, of that one, and of the two before the plain ones.
    assert len(left) > 40
    assert most < 20
