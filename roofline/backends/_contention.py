"""Whether the machine was ours while we measured: CPU time against wall and threads, and involuntary switches.

Two OpenMP threads on busy cores have measured 100 times too slow, without any error: every barrier waits for a
scheduler's quantum.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass

#: Below this CPU time per (wall x threads), with switches, or above this many switches per second, time was taken.
SHARE, SWITCHES = 0.9, 200.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Of this process since a `start`: wall and CPU time [s], involuntary context switches, load of the machine."""

    wall: float
    cpu: float
    switches: int
    load: float

    def share(self, threads: int) -> float:
        """CPU time / (wall x threads); near 1 where all threads work or spin all the time."""
        return self.cpu / (self.wall * threads) if self.wall > 0 else 1.0

    @property
    def switch_rate(self) -> float:
        """Involuntary switches per second."""
        return self.switches / self.wall if self.wall > 0 else 0.0

    def contended(self, threads: int) -> bool:
        """Whether somebody else used the cores that the threads needed.

        Fewer CPU seconds than wall x threads alone may be serial code; many involuntary switches are other processes.
        """
        return self.switch_rate > SWITCHES or (self.share(threads) < SHARE and self.switch_rate > SWITCHES / 4)


@dataclass(frozen=True, slots=True)
class Start:
    """A moment to measure from."""

    wall: float
    cpu: float
    switches: int


def start() -> Start:
    """Begin to watch."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Start(time.perf_counter(), usage.ru_utime + usage.ru_stime, usage.ru_nivcsw)


def since(begin: Start) -> Usage:
    """What was used since `begin`."""
    now = start()
    return Usage(now.wall - begin.wall, now.cpu - begin.cpu, now.switches - begin.switches, os.getloadavg()[0])


def peak_memory() -> float:
    """The largest resident set of this process so far [byte]."""
    scale = 1 if os.uname().sysname == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)
