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
OUTSIDE = "the host outside of the framework"
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
#: Conditions of plain steps [s]: compiling anew; the kernel of the operating system, and its page faults.
_COMPILING, SYSTEM, FAULTS = "compiling_seconds_per_step", "system_seconds_per_step", "page_faults_per_step"
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the profiled steps show [s]: dispatching each op and the host outside before each, shape (ops,); parts."""

    dispatch: Array
    outside: Array
    host: Mapping[str, float]
    waits: Mapping[str, float]


def split_gap(run: Step) -> HostTime:
    """Split the gap of a run into dispatching its ops and measured parts."""
    parts: dict[str, float] = {}
    rest = max(0.0, run.gap)
    for name, seconds in _measured_in_plain_steps(run):
        taken = min(seconds, rest)
        if taken > 0:
            parts[name], rest = taken, rest - taken
    seen = _seen_under_profiler(run, parts)
    dispatch, host, waits = seen.dispatch, seen.host, seen.waits
    # What plain steps leave holds the waits, and what is left then the host's own time, which a profiler stretches.
    fit = _fit(sum(waits.values()), rest)
    busy = _fit(float(dispatch.sum()) + sum(host.values()), rest - fit * sum(waits.values()))
    upper = {name: seconds * scale for some, scale in ((waits, fit), (host, busy)) for name, seconds in some.items()}
    upper = {name: seconds for name, seconds in upper.items() if seconds > 0}
    for name, seconds in upper.items():
        parts[name] = parts.get(name, 0.0) + seconds
    left = run.gap - busy * float(dispatch.sum()) - sum(parts.values())
    if abs(left) > ROUNDING * run.wall:
        parts[NOT_KNOWN] = left
    return HostTime(dispatch * busy, parts, frozenset(upper), seen.outside * busy)


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
    for name, condition in ((FOR_A_CORE, QUEUED), (COMPILING, _COMPILING), (FILLING, MAKING)):
        yield name, conditions.get(condition, 0.0)


def _runs_ahead(run: Step) -> bool:
    """Return whether ops may run while the host sleeps."""
    return run.has_queue or ON_CORE in run.profile.conditions


def _seen_under_profiler(run: Step, plain: Mapping[str, float]) -> _Seen:
    """Return what dispatching each op takes, the host's other time, and waits, as the profiled steps show them.

    plain: parts that plain steps measured; the host was outside of the framework meanwhile.
    """
    profile = run.profile
    causes = profile.profiled.idle_causes if profile.profiled else {}
    waits = {part: seconds_of(cause, causes) for cause, part in _SEEN.items()}
    waits[COMPILING] = max(0.0, waits[COMPILING] - plain.get(COMPILING, 0.0))
    pairs = [op.host_ns for op in profile.ops if op.host_ns is not None]
    times = np.maximum(1, loops.times(profile)).astype(np.float64)
    if not pairs or len(pairs) < len(profile.ops):
        each = seconds_of(DISPATCH, causes) / times.sum() if len(times) else 0.0
        return _Seen(each * times, np.zeros(len(times)), {}, waits)
    framework, python = np.asarray(pairs, np.float64).reshape(-1, 2).T * NANOSECOND
    reads = np.asarray([op.host_reads or 0 for op in profile.ops], np.float64) > 0
    needed = _dispatching(run, python, times, reads)
    reading = float((python - needed)[reads].sum())
    # What of the idle time is before no op follows the last one.
    before = float((framework + python).sum())
    tail = 0.0 if run.has_queue else max(0.0, (run.idle or 0.0) - before - sum(waits.values()))
    before_ops = np.where(reads, 0.0, python - needed)
    whole = float(before_ops.sum()) + tail
    known = sum(plain.get(name, 0.0) for name in (SLEEPING, FILLING, COMPILING)) + waits[FOR_INPUT]
    outside = max(0.0, whole - known)
    # Of a host that runs ahead, no more than what the profiled steps saw of it while no op ran.
    asleep = min(profile.conditions.get(ASLEEP, 0.0), outside) if _runs_ahead(run) else 0.0
    host = {READING: reading, SLEEPING: asleep, OUTSIDE: outside - asleep}
    return _Seen(framework + needed, before_ops * _fit(whole, outside - asleep), host, waits)


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
