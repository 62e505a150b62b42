"""The times of steps in a loop of a library's own, such as Keras's `fit`, by what it calls meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Clock:
    """What the callbacks of a loop call, with the numbers of its batches from 0 on.

    Batch 0, which compiles, is left out. ends: when batch 1 began, and when each batch from there on ended [s].
    """

    ends: list[float] = field(default_factory=list)

    def begin(self, batch: int) -> None:
        """A batch begins."""
        if batch == 1:
            self.ends.append(time.perf_counter())

    def end(self, batch: int) -> None:
        """A batch ended."""
        if batch >= 1:
            self.ends.append(time.perf_counter())

    @property
    def steps(self) -> tuple[float, ...]:
        """From the end of one batch to that of the next one [s]; together from the begin of batch 1 to the end."""
        return tuple(after - before for before, after in pairwise(self.ends))


@dataclass(slots=True)
class Waits:
    """How long a loop waited for batches: when each wait began, and how long it was [s]."""

    waits: list[tuple[float, float]] = field(default_factory=list)

    def seen(self, wait: Callable[[], object]) -> object:
        """What `wait` returns, or raises."""
        began = time.perf_counter()
        try:
            return wait()
        finally:
            self.waits.append((began, time.perf_counter() - began))

    def per_step(self, clock: Clock) -> float | None:
        """The waits among the timed steps, per step [s]; None where there was not one for each but the first.

        That one's batch may have been fetched before it began. A loop that fetches inside of a compiled program shows
        none, but for those of tracing it.
        """
        steps = len(clock.steps)
        inside = [wait for began, wait in self.waits if clock.ends[0] <= began < clock.ends[-1]] if steps else []
        return sum(inside) / steps if len(inside) >= max(1, steps - 1) else None
