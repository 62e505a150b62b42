"""Recording the steps of a loop as a coroutine of it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from roofline.measuring.in_loop import Coroutine, LoopRecording


def two_steps(run: Callable[[], object]) -> list[object]:
    return [run(), run()]


def test_each_step_goes_on_where_it_ended_also_in_a_coroutine_of_the_loop() -> None:
    """The second step ends in a coroutine of the program, which is where the loop goes on."""
    greenlet = pytest.importorskip("greenlet").greenlet
    recording = LoopRecording(two_steps)
    seen: list[str] = []
    recording.start()
    recording.step("first")

    def inner() -> None:
        recording.step("second")
        seen.append("inner")

    greenlet(inner).switch()
    seen.append("outer")
    assert seen == ["inner", "outer"]
    assert recording.result == ["first", "second"]


def test_a_recording_that_is_closed_in_a_coroutine_returns_there() -> None:
    greenlet = pytest.importorskip("greenlet").greenlet
    recording = LoopRecording(two_steps)
    seen: list[str] = []
    recording.start()

    def inner() -> None:
        recording.close()
        seen.append("inner")

    greenlet(inner).switch()
    seen.append("outer")
    assert (seen, recording.runs, recording.result) == (["inner", "outer"], False, None)


def test_a_coroutine_is_free_again_behind_a_recording_that_ended_or_was_closed() -> None:
    coroutine = Coroutine()
    ended, closed = (LoopRecording(two_steps, coroutine) for _ in range(2))
    ended.start()
    assert not coroutine.is_free
    beside = LoopRecording(two_steps, coroutine)
    beside.start()
    for recording in (ended, beside):
        recording.step("first")
        recording.step("second")
    assert ended.result == beside.result == ["first", "second"]
    assert coroutine.is_free
    closed.start()
    closed.close()
    assert (closed.runs, closed.result, coroutine.is_free) == (False, None, True)
    coroutine.end()
    assert coroutine.greenlet.dead


def test_an_error_that_looks_through_the_stack_may_be_raised_in_a_coroutine(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """PyTorch's do; what lies around the coroutine's own part differs from step to step."""
    pytest.importorskip("torch")
    run = python("-c", STACKS)
    assert (run.returncode, run.stdout) == (0, "30\n"), run.stderr


#: Starts recordings and goes on with them at many depths of the C stack, and raises errors in them.
STACKS = """
import random, torch
from roofline.measuring.in_loop import Coroutine, LoopRecording

def nested(depth, function):
    return function() if not depth else sorted([0], key=lambda _: (nested(depth - 1, function), 0)[1])

def record(run):
    for number in range(8):
        run()
        try:
            torch._C._dispatch_has_kernel_for_dispatch_key("aten::to.prim_Device", "CPU")
        except RuntimeError:
            pass
    return number

chance, coroutine, ended = random.Random(0), Coroutine(), 0
for _ in range(30):
    recording = LoopRecording(record, coroutine)
    nested(chance.randrange(1, 30), recording.start)
    while recording.runs:
        nested(chance.randrange(1, 30), lambda: torch.randn(2, 2) + 1)
        nested(chance.randrange(40), recording.step)
    ended += recording.result == 7
print(ended)
"""
