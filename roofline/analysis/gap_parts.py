"""Split the time of a run in which no op ran: what dispatching each op takes, and measured parts of the rest.

    gap = sum of dispatch over ops + sum of parts

An op's dispatch is the framework's own time before it, and Python there up to what an op takes inside layers, as it was
calibrated. Parts measured in plain steps count whole, and are taken off what the profiled steps saw. What was seen
under the profiler alone, which stretches the time of a host, is an upper end. "not known" closes the sum (+ or -).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from roofline.analysis.caches import loops
from roofline.analysis.dispatch_cost import beyond_dispatch
from roofline.analysis.gap_causes import COMMUNICATION, COMPILATION, DISPATCH, INPUT, OTHER, SYNCHRONISATION, seconds_of
from roofline.core.arrays import Array, Bools
from roofline.core.copies import crossing
from roofline.core.device import Device
from roofline.core.executor import ASLEEP, AWAY, MAKING, ON_CORE, QUEUED, SHORTEST_SLEEP
from roofline.core.executor import COMPILING as COMPILE_TIME
from roofline.core.rows import rows
from roofline.core.schema import Profile
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import DEVICE_WAITS
from roofline.units import NANOSECOND

#: Parts of a gap.
DISPATCHING = "dispatching"
SLEEPING = "asleep"
FOR_A_CORE = "waiting for a core"
FOR_INPUT = "waiting for input"
READING = "reading results"
COMPILING = "compiling or tracing"
FILLING = "making tensors of Python's numbers"
OUTSIDE = "code outside of the framework"
AFTER = "after the last op"
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
    **{wait: wait for wait in DEVICE_WAITS},
}
#: Time before an op is unusual above so many times the median. By choice.
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
    under the profiler alone. outside: of the part `OUTSIDE` what was before each op [s], shape (ops,).
    """

    dispatch: Array
    parts: Mapping[str, float]
    upper: frozenset[str]
    outside: Array


def split_gap(run: Step) -> HostTime:
    """Split the gap of a run into dispatching its ops and measured parts."""
    parts: dict[str, float] = {}
    remaining = max(0.0, run.gap)
    for name, seconds in _measured_in_plain_steps(run):
        measured = min(seconds, remaining)
        if measured > 0:
            parts[name], remaining = measured, remaining - measured
    waits = {part: seconds_of(cause, _idle_causes(run)) for cause, part in _SEEN.items()}
    waits[COMPILING] = max(0.0, waits[COMPILING] - parts.get(COMPILING, 0.0))
    waiting = sum(waits.values())
    dispatch, outside, host = _host_under_profiler(run, waits, parts)
    host_seconds = float(dispatch.sum()) + sum(host.values())
    # A profiler stretches all that a host does, waiting or not. Beside a queue, which hides the host where it is fast
    # enough, what plain steps leave holds the waits first: what the profiler adds there is the host's own time.
    fit = _fit(waiting if run.has_queue else waiting + host_seconds, remaining)
    busy = _fit(host_seconds, remaining - fit * waiting)
    upper = {name: seconds * scale for times, scale in ((waits, fit), (host, busy)) for name, seconds in times.items()}
    upper = {name: seconds for name, seconds in upper.items() if seconds > 0}
    for name, seconds in upper.items():
        parts[name] = parts.get(name, 0.0) + seconds
    not_known = run.gap - busy * float(dispatch.sum()) - sum(parts.values())
    if abs(not_known) > ROUNDING * run.wall:
        parts[NOT_KNOWN] = not_known
    return HostTime(dispatch * busy, parts, frozenset(upper), outside * busy)


def _fit(seconds: float, room: float) -> float:
    """Return the share of a time that there is room for [s]."""
    return min(1.0, max(0.0, room) / seconds) if seconds > 0 else 0.0


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


def _host_under_profiler(
    run: Step, waits: Mapping[str, float], plain: Mapping[str, float]
) -> tuple[Array, Array, Mapping[str, float]]:
    """Return what the host does in the profiled steps besides waiting [s].

    That is dispatching each op, and being outside of the framework before each, shape (ops,), and parts of the gap.
    waits: what it waits for. plain: the parts that plain steps measured. Neither is a part of what is returned.
    """
    profile = run.profile
    times = loops.times(profile).astype(np.float64)
    if not profile.ops or any(op.host_ns is None for op in profile.ops):
        dispatch = times * (seconds_of(DISPATCH, _idle_causes(run)) / times.sum() if len(times) else 0.0)
        return dispatch, np.zeros(len(times)), {}
    framework, python = rows(profile).host.T * NANOSECOND
    reads = _reads(profile)
    needed = _dispatching(run, python, times, reads)
    # Beside a queue all that no event says to be Python is in the framework, and so are the waits of a host.
    inside = sum(waits[name] for name in (FOR_INPUT, BLOCKED, COMPILING)) if run.has_queue else 0.0
    usual = _usual(framework, times, _median(framework, times))
    unusual = _less(framework - usual, inside)
    # What of the idle time is before no op follows the last one, but for what whole nanoseconds of each op leave.
    tail = (run.idle or 0.0) - float((framework + python).sum()) - (sum(waits.values()) - inside)
    tail = tail if tail > len(times) * NANOSECOND else 0.0
    outside = np.append(np.where(reads, 0.0, python - needed), tail)
    # A host sleeps and makes tensors outside of the framework; it compiles in it, where that takes long, or outside.
    outside = _less(outside, plain.get(SLEEPING, 0.0) + plain.get(FILLING, 0.0))
    remaining = _less(np.append(unusual, outside), plain.get(COMPILING, 0.0))
    unusual, outside = np.split(remaining, [len(times)])
    # Of a host that runs ahead, no more than what the profiled steps saw of it while no op ran.
    asleep = min(profile.conditions.get(ASLEEP, 0.0), float(outside.sum())) if _runs_ahead(run) else 0.0
    *before, after = _less(outside, asleep).tolist()
    parts = {READING: float((python - needed)[reads].sum()), SLEEPING: asleep, OUTSIDE: sum(before), AFTER: after}
    return usual + unusual + needed, np.asarray(before), parts


def _reads(profile: Profile) -> Bools:
    """Return before which ops the host reads results: of the op before, or by the op, a copy out; shape (ops,)."""
    of = rows(profile)
    reads = np.asarray([bool(op.host_reads) for op in profile.ops], bool)
    out = np.asarray([crossing(name) == "out" for name in profile.kernels], bool)
    if out.any():
        copied = np.bincount(np.repeat(np.arange(len(of.ran)), of.ran)[out[of.kernels[:, 0]]], minlength=len(of.ran))
        reads |= (of.ran > 0) & (copied == of.ran)
    return reads


def _less(times: Array, seconds: float) -> Array:
    """Return some times less so much of their sum, in proportion [s]."""
    total = float(times.sum())
    return times * _fit(total, total - seconds)


def _dispatching(run: Step, python: Array, times: Array, reads: Bools) -> Array:
    """Return what of Python before each op dispatches it [s], shape (ops,).

    Up to what such an op takes a host inside layers, as calibrated. Of a host that was not, all of it if it is shorter
    than any sleep or not unusual, else what the median op takes; so it is also where results are read before an op.
    """
    median = _median(python[~reads], times[~reads])
    beyond_usual = beyond_dispatch(run.profile, run.device)
    needed = _usual(python, times, median) if beyond_usual is None else np.maximum(0.0, python - beyond_usual)
    return np.where(reads, np.minimum(needed, median * times), needed)


def _usual(seconds: Array, times: Array, median: float) -> Array:
    """Return time before each op [s] where it is shorter than any sleep or not unusual, else that of the median op."""
    return np.where(seconds > max(SHORTEST_SLEEP, _USUAL * median) * times, median * times, seconds)


def _median(seconds: Array, times: Array) -> float:
    """Return the time before the median op, each time that it runs [s]; 0 of none."""
    return float(np.median(seconds / times)) if len(times) else 0.0
