"""Whether the machine was ours while we measured: CPU time against wall and threads, and involuntary switches.

Beside them the page faults of plain steps: memory that a step takes from the system anew, and gives back.

Two OpenMP threads on busy cores have measured 100 times too slow, without any error: every barrier waits for a
scheduler's quantum.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from roofline.core.executor import AWAY, QUEUED, QUEUED_WORKER

#: Below this CPU time per (wall x threads), with switches, or above this many switches per second, time was taken.
SHARE, SWITCHES = 0.9, 200.0
#: Above this share of all cores taken by others, with so much of them taken in all, somebody had to wait.
OTHERS, FULL = 0.05, 0.95
#: How often clocks are read until nothing came between them. By choice: even on full cores that is rare.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Usage:
    """Of this process since a `start`: wall and CPU time [s], involuntary context switches, load of the machine.

    others: CPU time of everything else on the machine, other tenants' (steal) included [s].
    """

    wall: float
    cpu: float
    switches: int
    load: float
    others: float = 0.0

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

    def crowded(self) -> bool:
        """Whether the machine was full, and not by this process alone.

        For frameworks that have more threads than cores: they switch between their own, which says nothing.
        """
        cores = (os.cpu_count() or 1) * self.wall
        return self.others > OTHERS * cores and self.cpu + self.others > FULL * cores


@dataclass(frozen=True, slots=True)
class Start:
    """A moment to measure from."""

    wall: float
    cpu: float
    switches: int
    machine: float


def start() -> Start:
    """Begin to watch."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Start(time.perf_counter(), usage.ru_utime + usage.ru_stime, usage.ru_nivcsw, _busy())


def since(begin: Start) -> Usage:
    """What was used since `begin`."""
    now = start()
    cpu = now.cpu - begin.cpu
    others = max(0.0, now.machine - begin.machine - cpu)
    return Usage(now.wall - begin.wall, cpu, now.switches - begin.switches, os.getloadavg()[0], others)


@dataclass(slots=True)
class System:
    """What the system did for this process, all threads, while `counting`.

    faults: minor page faults, each a page mapped anew, of 4 KiB or of 2 MiB where it gives huge ones; seconds: CPU time
    inside the system [s], most of it clearing those pages where there are many. away: time in which the thread that
    counts was on no core [s]: asleep or waiting; or pushed aside by another program, where the system does not tell.
    queued: time in which it was pushed aside [s], None there. workers: the same of each other thread, by its number.
    """

    faults: int = 0
    seconds: float = 0.0
    away: float = 0.0
    queued: float | None = 0.0
    workers: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts what happens inside, beside what was counted before."""
        before, waited = resource.getrusage(resource.RUSAGE_SELF), _queued_workers()
        off, queued = _off_core()
        yield
        then_off, then_queued = _off_core()
        self.away += max(0.0, (then_off - (then_queued or 0.0)) - (off - (queued or 0.0)))
        if self.queued is None or queued is None or then_queued is None:
            self.queued = None
        else:
            self.queued += then_queued - queued
        for thread, seconds in _queued_workers().items():
            self.workers[thread] = self.workers.get(thread, 0.0) + seconds - waited.get(thread, 0.0)
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.faults += after.ru_minflt - before.ru_minflt
        self.seconds += after.ru_stime - before.ru_stime

    def per_step(self, steps: int) -> dict[str, float]:
        """The conditions of a profile; without steps there are none."""
        if not steps:
            return {}
        return {"page_faults_per_step": self.faults / steps, "system_seconds_per_step": self.seconds / steps}

    def away_per_step(self, steps: int) -> dict[str, float]:
        """The conditions of a profile whose ops run in the thread that counts."""
        return {AWAY: self.away / steps} if steps else {}

    def queued_per_step(self, steps: int) -> dict[str, float]:
        """What this thread and that other one which waited longest waited for a core; nothing where nobody tells.

        Threads wait at the same time, so that their sum would say nothing of a step.
        """
        if not steps or self.queued is None:
            return {}
        worker = {QUEUED_WORKER: max(self.workers.values()) / steps} if self.workers else {}
        return {QUEUED: self.queued / steps, **worker}


def away() -> float:
    """Return how long this thread was on no core, since some moment, without the queue for one [s]."""
    off, queued = _off_core()
    return off - (queued or 0.0)


def _off_core() -> tuple[float, float | None]:
    """Time in which this thread was on no core, since some moment, and `_queued` of it [s]."""
    queued = _queued()
    for _ in range(_TRIES):
        off, before, queued = time.perf_counter() - time.thread_time(), queued, _queued()
        if queued == before:  # else it was pushed aside between the two clocks and the queue, and they do not fit
            break
    return off, queued


def _queued() -> float | None:
    """Time in which this thread wanted a core and had none [s]; None where the system does not tell.

    Linux: the second number of `schedstat`, in ns (the kernel's Documentation/scheduler/sched-stats.rst).
    """
    return _queued_in("/proc/thread-self")


def _queued_workers() -> dict[int, float]:
    """The same of all other threads of this process, by their number."""
    try:
        threads = [int(name) for name in os.listdir("/proc/self/task")]
    except (OSError, ValueError):
        return {}
    own = threading.get_native_id()
    waited = ((thread, _queued_in(f"/proc/self/task/{thread}")) for thread in threads if thread != own)
    return {thread: seconds for thread, seconds in waited if seconds is not None}  # one may have ended


def _queued_in(folder: str) -> float | None:
    try:
        with open(f"{folder}/schedstat") as file:
            numbers = [int(number) for number in file.read().split()]
        return numbers[1] * 1e-9 if any(numbers) else None  # a kernel that does not keep them writes zeros
    except (OSError, ValueError, IndexError):
        return None


def was_contended(conditions: Mapping[str, float], threads: int) -> bool:
    """`contended` of a run, or `crowded` where its recorder knows what others used, from the conditions it recorded."""
    share = conditions.get("cpu_share", 1.0)
    rate, others = conditions.get("involuntary_switches_per_second", 0.0), conditions.get("others_cpu")
    second = Usage(wall=1.0, cpu=share * threads, switches=round(rate), load=0.0, others=others or 0.0)
    return second.contended(threads) if others is None else second.crowded()


def _busy() -> float:
    """CPU time that the whole machine has spent on anything so far [s]."""
    import psutil

    times = psutil.cpu_times()
    names = ("user", "nice", "system", "irq", "softirq", "steal")
    return float(sum(getattr(times, name, 0.0) for name in names))


def peak_memory() -> float:
    """The largest resident set of this process so far [byte]."""
    scale = 1 if os.uname().sysname == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)
