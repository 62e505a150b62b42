"""Detect other programs during a measurement: CPU time against wall and threads, and involuntary switches.

It also counts the page faults of plain steps: memory that a step maps again each time, and returns.

Two OpenMP threads on busy cores have measured 100 times too slow, without any error: every barrier waits for a
scheduler's quantum.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from roofline.core.executor import AWAY, QUEUED, QUEUED_WORKER
from roofline.devices.cpu import affinity

#: A run was contended below this CPU time per (wall x threads), with switches, or above this many switches per second.
SHARE, SWITCHES = 0.9, 200.0
#: Threads had to wait if others used more than this share of the cores they may use, and all more than that share.
OTHERS, FULL = 0.05, 0.95
#: Tries to read several clocks without an interruption in between. By choice: even on full cores one is rare.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Usage:
    """Hold this process's use since a `start`: wall and CPU time [s], involuntary context switches, machine load.

    cores: how many any thread of this process may use. others: CPU time of all other processes on them, other tenants'
    (steal) included [s].
    """

    wall: float
    cpu: float
    switches: int
    load: float
    cores: int
    others: float = 0.0

    def share(self, threads: int) -> float:
        """Compute CPU time / (wall x threads); near 1 where all threads work or spin all the time."""
        return self.cpu / (self.wall * threads) if self.wall > 0 else 1.0

    @property
    def switch_rate(self) -> float:
        """Involuntary switches per second."""
        return self.switches / self.wall if self.wall > 0 else 0.0

    def contended(self, threads: int) -> bool:
        """Tell whether other processes used the cores that the threads needed.

        Fewer CPU seconds than wall x threads alone may be serial code; many involuntary switches are other processes.
        """
        return self.switch_rate > SWITCHES or (self.share(threads) < SHARE and self.switch_rate > SWITCHES / 4)

    def crowded(self) -> bool:
        """Tell whether the cores that this process may use were full, and not by it alone.

        For frameworks with more threads than cores: they switch between their own threads, which proves nothing.
        """
        available = self.cores * self.wall
        return self.others > OTHERS * available and self.cpu + self.others > FULL * available


@dataclass(frozen=True, slots=True)
class Start:
    """Hold a moment to measure from. machine: CPU time that `cores` have spent so far [s]."""

    wall: float
    cpu: float
    switches: int
    machine: float
    cores: frozenset[int]


def start() -> Start:
    """Begin to watch the cores that this process may use now."""
    return _moment(_cores())


def since(begin: Start) -> Usage:
    """Compute the use since `begin`, on its cores."""
    now = _moment(begin.cores)
    cpu = now.cpu - begin.cpu
    return Usage(
        wall=now.wall - begin.wall,
        cpu=cpu,
        switches=now.switches - begin.switches,
        load=os.getloadavg()[0],
        cores=len(begin.cores),
        others=max(0.0, now.machine - begin.machine - cpu),
    )


def _moment(cores: frozenset[int]) -> Start:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Start(time.perf_counter(), usage.ru_utime + usage.ru_stime, usage.ru_nivcsw, _busy(cores), cores)


def _cores() -> frozenset[int]:
    """List the cores that any thread of this process may use.

    OpenMP may bind each thread to a core of its own, the calling one, too, and CPU time is that of them all.
    """
    cores = set(affinity())
    with suppress(OSError):  # there is no such folder
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError):  # it has ended
                cores |= os.sched_getaffinity(int(thread))
    return frozenset(cores)


@dataclass(slots=True)
class System:
    """Count the system's work for this process, all threads, while `counting`.

    faults: minor page faults, each a newly mapped page of 4 KiB, or of 2 MiB where the system gives huge pages;
    seconds: CPU time inside the system [s], most of it clearing those pages where there are many. away: time in which
    the counting thread was on no core [s]: asleep or waiting; it includes the time in the queue for a core where the
    system does not tell that. queued: time in that queue [s], None if unknown. workers: time in the queue of each other
    thread, by thread number.
    """

    faults: int = 0
    seconds: float = 0.0
    away: float = 0.0
    queued: float | None = 0.0
    workers: dict[int, float] = field(default_factory=dict)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Add the events inside the context to the counts so far."""
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

    def add(self, other: System) -> None:
        """Add what another one counted."""
        self.faults += other.faults
        self.seconds += other.seconds
        self.away += other.away
        self.queued = None if self.queued is None or other.queued is None else self.queued + other.queued
        for thread, seconds in other.workers.items():
            self.workers[thread] = self.workers.get(thread, 0.0) + seconds

    def per_step(self, steps: int) -> dict[str, float]:
        """Return faults and system time per step, as conditions of a profile; empty without steps."""
        if not steps:
            return {}
        return {"page_faults_per_step": self.faults / steps, "system_seconds_per_step": self.seconds / steps}

    def away_per_step(self, steps: int) -> dict[str, float]:
        """Return the time off the cores per step, for a profile whose ops run in the counting thread."""
        return {AWAY: self.away / steps} if steps else {}

    def queued_per_step(self, steps: int) -> dict[str, float]:
        """Return the time per step that this thread, and the longest waiting other thread, queued for a core.

        Empty where the system does not tell. Threads wait at the same time, so their sum is no part of a step.
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
    """Read how long this thread was on no core, since some moment, and the queued part of it [s]."""
    queued = _queued()
    for _ in range(_TRIES):
        off, before, queued = time.perf_counter() - time.thread_time(), queued, _queued()
        if queued == before:  # else it was pushed aside between the two clocks and the queue, and they do not fit
            break
    return off, queued


def _queued() -> float | None:
    """Read how long this thread queued for a core [s]; None where the system does not tell.

    Linux: the second number of `schedstat`, in ns (the kernel's Documentation/scheduler/sched-stats.rst).
    """
    return _queued_in("/proc/thread-self")


def _queued_workers() -> dict[int, float]:
    """Read how long each other thread of this process queued for a core [s], by thread number."""
    try:
        threads = [int(name) for name in os.listdir("/proc/self/task")]
    except (OSError, ValueError):
        return {}
    this_thread = threading.get_native_id()
    waited = ((thread, _queued_in(f"/proc/self/task/{thread}")) for thread in threads if thread != this_thread)
    return {thread: seconds for thread, seconds in waited if seconds is not None}  # one may have ended


def _queued_in(folder: str) -> float | None:
    try:
        with open(f"{folder}/schedstat") as file:
            numbers = [int(number) for number in file.read().split()]
        return numbers[1] * 1e-9 if any(numbers) else None  # a kernel that does not keep them writes zeros
    except (OSError, ValueError, IndexError):
        return None


def was_contended(conditions: Mapping[str, float], threads: int) -> bool:
    """Evaluate `contended`, or `crowded` where the CPU time of others is known, from the conditions of a run."""
    share = conditions.get("cpu_share", 1.0)
    rate, others_cpu = conditions.get("involuntary_switches_per_second", 0.0), conditions.get("others_cpu")
    second = Usage(
        wall=1.0,
        cpu=share * threads,
        switches=round(rate),
        load=0.0,
        cores=len(_cores()),
        others=others_cpu or 0.0,
    )
    return second.contended(threads) if others_cpu is None else second.crowded()


def _busy(cores: frozenset[int]) -> float:
    """Read the CPU time that cores have spent so far [s]."""
    import psutil

    every = psutil.cpu_times(percpu=True)
    used = [every[core] for core in cores] if max(cores) < len(every) else every  # those that are offline have no entry
    names = ("user", "nice", "system", "irq", "softirq", "steal")
    return float(sum(getattr(times, name, 0.0) for times in used for name in names))


def peak_memory() -> float:
    """Read the largest resident set of this process so far [byte]."""
    scale = 1 if os.uname().sysname == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)
