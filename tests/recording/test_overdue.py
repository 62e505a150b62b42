"""What does not return is said once, with the line that it is at."""

from __future__ import annotations

import math
import sys
import threading

from roofline.recording.overdue import Overdue, where

#: [s] By choice: short for a test, and long enough for a thread to be scheduled.
PATIENCE = 0.02


def waits(event: threading.Event) -> None:
    event.wait(60)


def test_a_step_that_does_not_return_is_named() -> None:
    said: list[str] = []
    is_said = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        is_said.set()

    with Overdue(say, PATIENCE) as overdue:
        overdue.expect("The step", 0.0)
        waits(is_said)
        threading.Event().wait(3 * PATIENCE)
    (sentence,) = said
    line = waits.__code__.co_firstlineno + 1
    assert sentence.startswith("The step has not returned for 0.02 s: it is at ")
    assert f"test_overdue.py:{line} (waits) > threading.py:" in sentence


def test_what_returns_in_time_is_not_named() -> None:
    said: list[str] = []
    with Overdue(said.append, PATIENCE) as overdue:
        for seconds in (60.0, math.inf):
            overdue.expect("The step", seconds)
            threading.Event().wait(3 * PATIENCE)
    assert said == []


def test_lines_are_those_of_the_program_and_the_innermost_one() -> None:
    frame = sys._getframe()
    assert where(frame).endswith(f"test_overdue.py:{frame.f_lineno} ({frame.f_code.co_name})")
    assert where(None) == ""
