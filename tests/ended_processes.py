"""Wait for processes of any parent to end: one that has ended and waits for its parent to read its status has."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil


def goes_on(number: int) -> bool:
    """Return whether the process of this number is there and has not ended."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for_end(numbers: Iterable[int], seconds: float = 300) -> list[int]:
    """Wait for all of them; return the numbers of those that go on after so long, which hang."""
    going, end = list(numbers), time.monotonic() + seconds
    while (going := [number for number in going if goes_on(number)]) and time.monotonic() < end:
        time.sleep(0.01)
    return going
