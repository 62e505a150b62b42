"""Time steps in a loop of a library's own, such as Keras's `fit`, through its callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Clock:
    """Time the batches of a loop, whose callbacks call it with the numbers of its batches from 0 on.

    Batch 0, which compiles, is left out. ends: the begin of batch 1, and the end of each batch from there on [s].
    """

    ends: list[float] = field(default_factory=list)

    def begin(self, batch: int) -> None:
        """Note the begin of a batch."""
        if batch == 1:
            self.ends.append(time.perf_counter())

    def end(self, batch: int) -> None:
        """Note the end of a batch."""
        if batch >= 1:
            self.ends.append(time.perf_counter())

    @property
    def steps(self) -> tuple[float, ...]:
        """Times from the end of one batch to that of the next one [s]; the first from the begin of batch 1."""
        return tuple(after - before for before, after in pairwise(self.ends))


@dataclass(slots=True)
class Waits:
    """Time a loop's waits for batches: begin and duration of each [s]."""

    waits: list[tuple[float, float]] = field(default_factory=list)

    def timed(self, wait: Callable[[], object]) -> object:
        """Time a wait; return its result, or raise its exception."""
        began = time.perf_counter()
        try:
            return wait()
        finally:
            self.waits.append((began, time.perf_counter() - began))

    def per_step(self, clock: Clock) -> float | None:
        """Sum the waits among the timed steps, per step [s]; None unless there was one for each but the first.

        The first batch may have been fetched before its step began. A loop that fetches inside of a compiled program
        shows only the waits of tracing it.
        """
        steps = len(clock.steps)
        inside = [wait for began, wait in self.waits if clock.ends[0] <= began < clock.ends[-1]] if steps else []
        return sum(inside) / steps if len(inside) >= max(1, steps - 1) else None
