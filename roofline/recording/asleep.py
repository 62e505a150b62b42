"""Measure how long the thread that runs a step sleeps, or waits for others than its own ops.

A framework waits for its ops in its own code, where time off the core is no sign of sleep. Python itself can wait in
few functions of its standard library only: sleeping, locks, files, sockets, other processes. A hook of Python's
watches these. It slows Python down, which lengthens no sleep, but shortens a wait for a worker that runs meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from roofline.recording import contention

#: Modules of Python's standard library whose functions, and methods of whose types, may wait in the operating system.
_WAITING = frozenset(
    "time _thread threading _queue select _socket socket _ssl _io posix _signal signal _multiprocessing".split()
)


def asleep(run: Callable[[], object], times: int) -> float:
    """Run something several times and return how long this thread is on no core in such functions each time [s].

    Time in the queue for a core is not included, where the system tells it.
    """
    hook, before = _Hook(), sys.getprofile()
    sys.setprofile(hook)
    try:
        for _ in range(times):
            run()
    finally:
        sys.setprofile(before)
    return max(0.0, hook.seconds) / times  # without a wait, the clocks may differ a little, in either direction


class _Hook:
    """Sum the time asleep; `sys.setprofile` calls it. seconds: asleep so far [s]."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._since = 0, 0.0

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        if event not in ("c_call", "c_return", "c_exception") or not _may_wait(function):
            return
        if event == "c_call":
            if not self._depth:
                self._since = contention.away()
            self._depth += 1
        elif self._depth:  # it begins inside of `sys.setprofile`, and ends before that
            self._depth -= 1
            if not self._depth:
                self.seconds += contention.away() - self._since


def _may_wait(function: Any) -> bool:
    """Return whether a function of C, or the type that it is a method of, is in one of the modules."""
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    return module in _WAITING
