"""Recording the steps of a loop as a coroutine of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from roofline.measuring.in_loop import LoopRecording


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
