"""Measure how much of the machine's processors a process gets, and whether other processes leave it enough."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from roofline.core.device import CONTENDED
from roofline.devices.cpu import affinity

#: [s] Time for which the processors are watched. By choice: 25 ticks of the clock that Linux counts load with.
_LOOK = 0.25
#: Linux: a folder for each thread of this process that lives.
_THREADS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Load:
    """Hold this process's use of the processors between two moments. Units: s.

    processor: time that its threads ran; waited: time that they were ready to run while others ran (Linux only);
    switches: how often they were taken off a processor.
    """

    wall: float = 0.0
    processor: float = 0.0
    waited: float = 0.0
    switches: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.wall + other.wall,
            self.processor + other.processor,
            self.waited + other.waited,
            self.switches + other.switches,
        )

    def contention(self, threads: int) -> float:
        """Compute the share of the threads' time in which they waited for a processor; 0 where it is not known.

        At most 1: a library may have more threads than asked for, which together wait longer than threads x wall.
        """
        return min(1.0, max(0.0, self.waited / (self.wall * threads))) if self.wall else 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Hold the totals of this process since it began. Units: s.

    waits: how long each living thread has waited for a processor, by thread number; empty where it is not known.
    """

    wall: float
    processor: float
    switches: int
    waits: Mapping[str, float]

    @classmethod
    def now(cls) -> Moment:
        """Read the totals."""
        try:
            import resource

            switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        except ImportError:  # Windows
            switches = 0
        waits = {}
        for path in _THREADS.glob("*/schedstat"):
            try:
                waits[path.parent.name] = 1e-9 * int(path.read_text(encoding="utf-8").split()[1])
            except (OSError, IndexError, ValueError):  # a thread that has just ended, another kernel
                continue
        return cls(time.perf_counter(), time.process_time(), switches, waits)

    def since(self, earlier: Moment) -> Load:
        """Subtract an earlier moment.

        The total of a thread that ended in between is lost: its waiting is not known, and not taken off others.
        A thread that began in between waited all of its total since then.
        """
        return Load(
            self.wall - earlier.wall,
            self.processor - earlier.processor,
            # Below 0 where a new thread has the number of one that ended.
            sum(max(0.0, total - earlier.waits.get(thread, 0.0)) for thread, total in self.waits.items()),
            self.switches - earlier.switches,
        )


def is_idle(threads: int) -> bool:
    """Tell whether the processors that this process may use have room for `threads` busy threads now."""
    return free_processors() >= threads * (1 - CONTENDED)


def free_processors() -> float:
    """Watch the processors that this process may use for a moment, and count the free ones (fractions add up).

    Time that a virtual machine's host gave to others (steal) counts as taken.
    """
    import psutil

    processors = affinity()
    busy = psutil.cpu_percent(interval=_LOOK, percpu=True)
    # A container may see fewer processors than its mask has numbers.
    return float(sum(1 - busy[number] / 100 for number in processors if number < len(busy)))
