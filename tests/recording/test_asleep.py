"""How long a step sleeps: in whatever way Python can, and not while it waits for what a framework does."""

from __future__ import annotations

import itertools
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable

import pytest

from roofline.recording.asleep import asleep

pytestmark = pytest.mark.xdist_group("timing")
#: How long each of them sleeps [s].
LONG = 0.02


def locked() -> None:
    lock = threading.Lock()
    lock.acquire()
    assert not lock.acquire(timeout=LONG)


def empty_queue() -> None:
    with pytest.raises(queue.Empty):
        queue.Queue[int]().get(timeout=LONG)


def read_later() -> None:
    """A pipe that somebody writes into after a while."""
    reading, writing = os.pipe()
    timer = threading.Timer(LONG, os.write, (writing, b"x"))
    timer.start()
    os.read(reading, 1)
    timer.join()
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "run",
    [lambda: time.sleep(LONG), locked, empty_queue, read_later, lambda: select.select([], [], [], LONG)],
    ids=["sleep", "lock", "queue", "pipe", "select"],
)
def test_a_step_that_sleeps(run: Callable[[], object]) -> None:
    """However often it is run, per step. Waking up late adds to it; a pipe may be written into before it is read."""
    began = time.perf_counter()
    assert 0.5 * LONG < asleep(run, 3) <= (time.perf_counter() - began) / 3


def test_a_step_that_works_is_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 calls that may wait and do not; what clocks lie apart, 1 us in either direction by turns, cancels."""
    apart = itertools.cycle([0.0, 1e-6, 0.0, -1e-6])
    monkeypatch.setattr("roofline.recording.contention.away", lambda: next(apart))

    def run() -> None:
        lock = threading.Lock()
        for _ in range(1000):
            lock.acquire()
            lock.release()

    assert asleep(run, 2) == pytest.approx(0.0, abs=1e-9)


def test_the_hook_of_the_program_stays_and_an_error_passes_through() -> None:
    def hook(*_: object) -> None:
        pass

    def fails() -> None:
        raise ValueError("mine")

    sys.setprofile(hook)
    try:
        asleep(lambda: None, 1)
        assert sys.getprofile() is hook
        with pytest.raises(ValueError, match="mine"):
            asleep(fails, 1)
        assert sys.getprofile() is hook
    finally:
        sys.setprofile(None)


def test_waiting_for_threads_of_its_ops_is_no_sleep() -> None:
    """A product on several threads, which the calling one waits for in PyTorch's own code, then 20 ms of sleep."""
    torch = pytest.importorskip("torch")
    x = torch.ones(512, 512)

    def run() -> None:
        x @ x
        time.sleep(LONG)

    assert asleep(lambda: x @ x, 3) == 0.0
    began = time.perf_counter()
    assert 0.99 * LONG < asleep(run, 3) <= (time.perf_counter() - began) / 3
