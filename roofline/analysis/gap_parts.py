"""Split the time of a run in which no op ran: what dispatching each op takes, and measured parts of the rest.

    gap = sum of dispatch over ops + sum of parts

An op's dispatch is the framework's own time before it, and Python there up to what an op takes inside layers, as it was
calibrated. Parts measured in plain steps count whole. What was seen under the profiler alone, which stretches the time
of a host, is an upper end. "not known" closes the sum and may have either sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches import loops
from roofline.analysis.dispatch_cost import beyond_dispatch
from roofline.analysis.gap_causes import COMMUNICATION, COMPILATION, DISPATCH, INPUT, OTHER, SYNCHRONISATION, seconds_of
from roofline.core.device import Device
from roofline.core.executor import ASLEEP, AWAY, MAKING, ON_CORE, QUEUED, SHORTEST_SLEEP
from roofline.core.executor import COMPILING as COMPILE_TIME
from roofline.core.schema import Profile
from roofline.core.statistics import ROUNDING
from roofline.units import NANOSECOND

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Parts of a gap.
DISPATCHING = "dispatching"
SLEEPING = "asleep"
FOR_A_CORE = "waiting for a core"
FOR_INPUT = "waiting for input"
READING = "reading results"
COMPILING = "compiling or tracing"
FILLING = "making tensors of Python's numbers"
OUTSIDE = "code outside of the framework"
BLOCKED = "after blocking calls"
FOR_RANKS = "waiting for other ranks"
DEVICE = "the device's own waiting"
PAGE_FAULTS = "the operating system"
NOT_KNOWN = "not known"

#: Causes of idle time that were seen under the profiler, as parts of the gap; all others are dispatching.
_SEEN = {
    INPUT: FOR_INPUT,
    SYNCHRONISATION: BLOCKED,
    COMPILATION: COMPILING,
    COMMUNICATION: FOR_RANKS,
    OTHER: DEVICE,
}
#: Python before an op of a host that was not calibrated is unusual above so many times the median. By choice.
_USUAL = 10


@dataclass(frozen=True, slots=True)
class Step:
    """A step whose gap is split: wall, gap, and idle time observed in the profiled steps [s], None: not observed.

    has_queue: whether its device works through a queue, so that it hides what the host does.
    """

    profile: Profile
    device: Device
    wall: float
    gap: float
    idle: float | None
    has_queue: bool


@dataclass(frozen=True, slots=True)
class HostTime:
    """The gap of a run, split.

    dispatch: of each op, per step [s], shape (ops,). parts: of the rest of the gap [s]. upper: the parts that were seen
    under the profiler alone. outside: of the part `OUTSIDE` what was before each op [s], shape (ops,); the rest of it
    followed the last one.
    """

    dispatch: Array
    parts: Mapping[str, float]
    upper: frozenset[str]
    outside: Array


def split_gap(run: Step) -> HostTime:
    """Split the gap of a run into dispatching its ops and measured parts."""
    parts: dict[str, float] = {}
    rest = max(0.0, run.gap)
    for name, seconds in _measured_in_plain_steps(run):
        taken = min(seconds, rest)
        if taken > 0:
            parts[name], rest = taken, rest - taken
    waits = {part: seconds_of(cause, _idle_causes(run)) for cause, part in _SEEN.items()}
    waits[COMPILING] = max(0.0, waits[COMPILING] - parts.get(COMPILING, 0.0))
    waiting = sum(waits.values())
    # The host was outside of the framework during what plain steps measured, and while it waited for input.
    known = sum(parts.get(name, 0.0) for name in (SLEEPING, FILLING, COMPILING)) + waits[FOR_INPUT]
    dispatch, outside, host = _host_under_profiler(run, waiting, known)
    # What plain steps leave holds the waits, and what is left then the host's own time, which a profiler stretches.
    fit = _fit(waiting, rest)
    busy = _fit(float(dispatch.sum()) + sum(host.values()), rest - fit * waiting)
    upper = {name: seconds * scale for some, scale in ((waits, fit), (host, busy)) for name, seconds in some.items()}
    upper = {name: seconds for name, seconds in upper.items() if seconds > 0}
    for name, seconds in upper.items():
        parts[name] = parts.get(name, 0.0) + seconds
    not_known = run.gap - busy * float(dispatch.sum()) - sum(parts.values())
    if abs(not_known) > ROUNDING * run.wall:
        parts[NOT_KNOWN] = not_known
    return HostTime(dispatch * busy, parts, frozenset(upper), outside * busy)


def _fit(whole: float, room: float) -> float:
    """Return the share of a time that there is room for [s]."""
    return min(1.0, max(0.0, room) / whole) if whole > 0 else 0.0


def _measured_in_plain_steps(run: Step) -> Iterator[tuple[str, float]]:
    """Yield what was measured of plain steps besides dispatching [s]."""
    conditions = run.profile.conditions
    away = conditions.get(ASLEEP)
    if away is None and run.profile.environment.get("threads") == "1":
        away = conditions.get(AWAY)  # beside threads of its own ops a thread is away to wait for them
    if not _runs_ahead(run):
        yield SLEEPING, away or 0.0
    for name, condition in ((FOR_A_CORE, QUEUED), (COMPILING, COMPILE_TIME), (FILLING, MAKING)):
        yield name, conditions.get(condition, 0.0)


def _runs_ahead(run: Step) -> bool:
    """Return whether ops may run while the host sleeps."""
    return run.has_queue or ON_CORE in run.profile.conditions


def _idle_causes(run: Step) -> Mapping[str, float]:
    return run.profile.profiled.idle_causes if run.profile.profiled else {}


def _host_under_profiler(run: Step, waiting: float, known: float) -> tuple[Array, Array, Mapping[str, float]]:
    """Return what the host does in the profiled steps besides waiting [s].

    That is dispatching each op, and being outside of the framework before each, shape (ops,), and parts of the gap.
    known: for how long it is known what it was outside of the framework for.
    """
    profile = run.profile
    times = loops.times(profile).astype(np.float64)
    if not profile.ops or any(op.host_ns is None for op in profile.ops):
        dispatch = times * (seconds_of(DISPATCH, _idle_causes(run)) / times.sum() if len(times) else 0.0)
        return dispatch, np.zeros(len(times)), {}
    framework, python = np.asarray([op.host_ns for op in profile.ops], np.float64).T * NANOSECOND
    reads = np.asarray([op.host_reads or 0 for op in profile.ops]) > 0
    needed = _dispatching(run, python, times, reads)
    before = np.where(reads, 0.0, python - needed)
    # What of the idle time is before no op follows the last one.
    tail = 0.0 if run.has_queue else max(0.0, (run.idle or 0.0) - float((framework + python).sum()) - waiting)
    whole = float(before.sum()) + tail
    outside = max(0.0, whole - known)
    # Of a host that runs ahead, no more than what the profiled steps saw of it while no op ran.
    asleep = min(profile.conditions.get(ASLEEP, 0.0), outside) if _runs_ahead(run) else 0.0
    parts = {READING: float((python - needed)[reads].sum()), SLEEPING: asleep, OUTSIDE: outside - asleep}
    return framework + needed, before * _fit(whole, outside - asleep), parts


def _dispatching(run: Step, python: Array, times: Array, reads: Bools) -> Array:
    """Return what of Python before each op dispatches it [s], shape (ops,).

    Up to what such an op takes a host inside layers, as calibrated. Of a host that was not, all of it if it is shorter
    than any sleep or not unusual, else what the median op takes; so it is also where results are read before an op.
    """
    median = float(np.median(python[~reads] / times[~reads])) if not reads.all() else 0.0
    beyond = beyond_dispatch(run.profile, run.device)
    if beyond is not None:
        needed = np.maximum(0.0, python - beyond)
    else:
        needed = np.where(python > max(SHORTEST_SLEEP, _USUAL * median) * times, median * times, python)
    return np.where(reads, np.minimum(needed, median * times), needed)
