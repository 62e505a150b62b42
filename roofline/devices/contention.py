"""What a process gets of the machine's processors, and whether others leave it enough of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from roofline.core.device import CONTENDED
from roofline.devices.cpu import affinity

#: [s] The machine is watched before it is called idle. By choice: 25 ticks of the clock that Linux counts load with.
_LOOK = 0.25


@dataclass(frozen=True, slots=True)
class Load:
    """What this process got of the machine. Units: s.

    processor: time that its threads ran; waited: time that they could have run but others did (Linux only);
    switches: how often they were taken off a processor.
    """

    wall: float = 0.0
    processor: float = 0.0
    waited: float = 0.0
    switches: int = 0

    @classmethod
    def now(cls) -> Load:
        """The totals since the process began; differences of two mean something."""
        try:
            import resource

            switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        except ImportError:  # Windows
            switches = 0
        waited = 0.0
        for path in Path("/proc/self/task").glob("*/schedstat"):
            try:
                waited += 1e-9 * int(path.read_text(encoding="utf-8").split()[1])
            except (OSError, IndexError, ValueError):  # a thread that has just ended, another kernel
                continue
        return cls(time.perf_counter(), time.process_time(), waited, switches)

    def __sub__(self, other: Load) -> Load:
        return Load(
            self.wall - other.wall,
            self.processor - other.processor,
            self.waited - other.waited,
            self.switches - other.switches,
        )

    def __add__(self, other: Load) -> Load:
        return Load(
            self.wall + other.wall,
            self.processor + other.processor,
            self.waited + other.waited,
            self.switches + other.switches,
        )

    def contention(self, threads: int) -> float:
        """The share of the threads' time in which they waited for a processor; 0 where it cannot be told.

        A library may have more threads than asked for, so that all of them together wait longer than there is time.
        """
        return min(1.0, self.waited / (self.wall * threads)) if self.wall else 0.0


def is_idle(threads: int) -> bool:
    """Watch the processors that this process may use for a moment: is there room for `threads` busy threads?

    Time that a virtual machine's host gave to others (steal) counts as taken.
    """
    import psutil

    processors = affinity()
    taken = psutil.cpu_percent(interval=_LOOK, percpu=True)
    # A container may see fewer processors than its mask has numbers.
    free = sum(1 - taken[number] / 100 for number in processors if number < len(taken))
    return bool(free >= threads * (1 - CONTENDED))
