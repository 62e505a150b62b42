"""Measure the energy of plain steps by the counter of an NVIDIA GPU.

The counter moves in ticks, every 20 to 100 ms by the kind of card: what is read is what was used up to the last one. So
the difference of two readings is off by the energy of a tick at most, at either end. The tick is observed, right behind
the steps, and what it makes unsure is told with the energy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

from roofline.core.schema import Energy
from roofline.devices import nvidia

#: A counter that does not move for so long [s], ten of its longest ticks, does not count. And moves that show a tick.
_PATIENCE, _MOVES = 1.0, 3
#: Time between two looks at the counter [s]: so finely is a tick known.
_LOOK = 1e-3


class Meter:
    """Read a counter [J] before and after each stretch of steps, and observe its tick in the end."""

    def __init__(self, read: Callable[[], float | None], is_shared: Callable[[], bool | None]) -> None:
        """read: the counter, None for none. is_shared: whether other processes use the device, None for unknown."""
        self._read, self._is_shared = read, is_shared
        #: Of each stretch: energy [J], None for unknown, time [s], steps.
        self._stretches: list[tuple[float | None, float, int]] = []
        self._shared: list[bool | None] = []
        self._tick: float | None = None

    @contextmanager
    def stretch(self, steps: int) -> Iterator[None]:
        """Measure so many steps, from an idle device to an idle device."""
        if steps == 0:
            yield
            return
        before, begin = self._read(), time.perf_counter()
        yield
        after, end = self._read(), time.perf_counter()
        used = None if before is None or after is None else after - before
        self._stretches.append((used, end - begin, steps))

    def forget_last(self) -> None:
        """Leave out the last stretch, in which a step was unlike the others."""
        if self._stretches:
            self._stretches.pop()

    def look_around(self) -> None:
        """Ask whether others use the device."""
        self._shared.append(self._is_shared())

    def observe(self) -> None:
        """Observe the counter's tick: the longer of the times between three moves [s]."""
        if not self._stretches or any(joules is None for joules, _, _ in self._stretches):
            return
        moves = [self._moved()]
        while moves[-1] is not None and len(moves) < _MOVES:
            moves.append(self._moved())
        times = [time for time in moves if time is not None]
        self._tick = max(after - before for before, after in pairwise(times)) if len(times) == _MOVES else None

    def _moved(self) -> float | None:
        """Wait for the counter's next move, and return when it was; None where it does not move."""
        before, begin = self._read(), time.perf_counter()
        while (now := time.perf_counter()) - begin < _PATIENCE:
            if self._read() != before:
                return now
            time.sleep(_LOOK)
        return None

    def energy(self) -> Energy | None:
        """Return the energy per step; None where it is not known, or no surer than to all of itself.

        The energy read is that of a time which differs from `taken` by a tick per stretch at most.
        """
        used = [joules for joules, _, _ in self._stretches if joules is not None and joules > 0]
        if not used or len(used) < len(self._stretches) or self._tick is None or True in self._shared:
            return None
        taken = sum(seconds for _, seconds, _ in self._stretches)
        steps = sum(number for _, _, number in self._stretches)
        ticks = len(used) * self._tick
        if ticks >= taken - ticks:
            return None
        step = sum(used) / steps
        return Energy(
            per_step=step,
            uncertainty=step * ticks / (taken - ticks),
            tick=self._tick,
            seconds=taken,
            steps=steps,
            alone=None not in self._shared,
        )


@contextmanager
def metered(device: str) -> Iterator[Meter]:
    """Meter the energy of a measurement on "cuda"; elsewhere nobody counts it."""
    if device != "cuda":
        yield Meter(lambda: None, lambda: None)
        return
    with nvidia.energy_counter() as counter:
        meter = Meter(counter.joules, counter.is_shared)
        meter.look_around()
        yield meter
        meter.look_around()
        meter.observe()
