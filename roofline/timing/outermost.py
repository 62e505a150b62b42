"""Add up the time of tasks that are reported when they end and may lie in each other, so that none counts twice."""

from __future__ import annotations

import time
from collections.abc import Callable


class Outermost:
    """Unite reported tasks, each of which ends when it is reported. seconds: of all so far [s]."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """Begin without any task."""
        self._clock = clock
        #: Begin and duration of the tasks that lie in no other one [s].
        self._tasks: list[tuple[float, float]] = []
        self.seconds = 0.0

    def ended(self, duration: float) -> None:
        """Add a task of this duration [s] that ended just now, in place of the tasks inside it."""
        begin = self._clock() - duration
        while self._tasks and self._tasks[-1][0] >= begin:
            self.seconds -= self._tasks.pop()[1]
        self._tasks.append((begin, duration))
        self.seconds += duration
