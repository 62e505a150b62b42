"""Where in a step no op ran: before which op, and what the host did there.

What is between two ops is the host's dispatch of the second one, and whatever else the host does there. Time in the
framework's own events is how an op is dispatched, however long it takes: a checkpoint sets its segment up, a library is
called. Outside of them it is Python, of which an op takes about as much as the others of the step; what is far more is
told apart: a loop, input, sleeping. A thread that sleeps is on no core, in the framework or out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import INPUT, seconds_of
from roofline.comparison.arrays import Array
from roofline.comparison.segments import executions
from roofline.core.executor import AWAY
from roofline.core.schema import Profile

#: Up to so many times the median, Python before an op is its dispatch; and up to so long [ns]. By choice: an op with a
#: few views before it takes Python as much, and the shortest sleep of Linux takes 50 us (its timers' slack).
_USUAL, _SHORT = 10.0, 20_000.0
#: What reading one result costs a host at most [ns], where it need not wait for it. By choice.
A_READ = 50_000.0
#: What setting up a segment whose activations are to be computed again costs at most [ns]. By choice, above the 0.1 to
#: 0.4 ms that were seen (docs/explaining.md).
SETTING_UP = 500_000.0
#: From this share of a step on, a thread that was on no core may have slept in it. By choice.
_ASLEEP = 0.02


@dataclass(frozen=True, slots=True)
class HostTime:
    """Of each op, how long no op ran before it [ns]: the host in the framework, and outside; shape (ops,).

    reading: what of the time before it is no part of these, as the host read results there [ns]; shape (ops,). reads:
    how many these are. times: how often a step runs it; its time is their sum. whole: all such time of the step, what
    follows the last op included [ns]. asleep: whether the host may have slept.
    """

    framework: Array
    python: Array
    reading: Array
    reads: float
    times: Array
    whole: float
    asleep: bool

    @property
    def all(self) -> Array:
        """Both together [ns]."""
        return self.framework + self.python

    @property
    def median(self) -> float:
        """The median over the ops with any, each time that one runs [ns]."""
        some = (self.all / self.times)[self.all > 0]
        return float(np.median(some)) if len(some) else 0.0

    @property
    def usual(self) -> float:
        """Up to how long the host is in Python to dispatch an op [ns]."""
        return max(_SHORT, _USUAL * self.median)

    def shares(self, time: Array) -> Array:
        """Times of ops as shares of the gap."""
        return time / self.whole if self.whole else np.zeros(len(time))


def reads_are_placed(profile: Profile) -> bool:
    """Whether it was recorded before which ops the host reads results."""
    return bool(profile.ops) and all(op.host_reads is not None for op in profile.ops)


def host_time(analysis: Analysis, placed: bool = False) -> HostTime:
    """The host's time before each op: as recorded, else as the representative step shows it, all of it Python's.

    placed: tell reading results from it, which says something where both runs of a comparison have that recorded.
    """
    profile = analysis.profile
    pairs = [op.host_ns for op in profile.ops if op.host_ns is not None]
    if len(pairs) == len(profile.ops):
        framework, python = np.asarray(pairs, np.float64).reshape(-1, 2).T
    else:
        framework, python = np.zeros(len(profile.ops)), _before(analysis)
    # What of the idle time was seen in all kept steps is not before an op of this one was after the last op.
    seen = 1e9 * ((analysis.idle or 0.0) - _reading_input(analysis))
    away = profile.conditions.get(AWAY)
    asleep = away is None or away > _ASLEEP * analysis.wall
    times = executions(profile).astype(np.float64)
    whole = max(float((framework + python).sum()), seen)
    reads = _reads(profile) if placed else np.zeros(len(times))
    reading = _reading(framework + python, times, reads)
    left = 1 - np.divide(reading, framework + python, out=np.zeros(len(times)), where=reading > 0)
    return HostTime(framework * left, python * left, reading, float(reads.sum()), times, whole, asleep)


def _reading_input(analysis: Analysis) -> float:
    """What of the idle time is before no op because it reads input [s], where the gap has a part of its own for that.

    Beside a device with a queue it is before the op that follows.
    """
    profiled = analysis.profile.profiled
    if profiled is None or analysis.has_queue or analysis.gap_causes is None:
        return 0.0
    return seconds_of(INPUT, profiled.idle_causes)


def _reads(profile: Profile) -> Array:
    """How many results the host reads before each op. An optimizer's own (its count of steps) are its dispatch."""
    optimizer = [phase == "optimizer" for phase in profile.phases]
    return np.asarray([0 if optimizer[op.phase] else op.host_reads or 0 for op in profile.ops], np.float64)


def _reading(idle: Array, times: Array, reads: Array) -> Array:
    """What of the time before each op is reading results [ns]: all but the median, up to `A_READ` for each.

    A loop that reads numbers one by one is Python, views and reads in turns, which no event tells from dispatching.
    """
    each = (idle / times)[(idle > 0) & (reads == 0)]
    usual = float(np.median(each)) if len(each) else 0.0
    return np.minimum(np.maximum(idle - usual * times, 0.0), A_READ * reads)


def dispatch(mine: HostTime, other: HostTime) -> Array:
    """For each op of one of two runs, the share of the gap that is its dispatch; shape (ops,).

    Python counts up to what is usual in either run: where most ops are tiny, the others are not dispatched faster.
    Where either host may have slept, the framework's part counts up to there as well.
    """
    usual = max(mine.usual, other.usual) * mine.times
    if mine.asleep or other.asleep:
        return mine.shares(np.minimum(mine.all, usual))
    return mine.shares(mine.framework + np.minimum(mine.python, usual))


def non_dispatch(analysis: Analysis, host: HostTime, first: float = 0.0) -> Array:
    """For each op, the share of the step's gap that is before it and at least is no dispatch; shape (ops,).

    Beyond what is usual, all but the median is something else. Nothing is said of the time before the first op: to
    start a compiled step is a dispatch of its own.

    Beside a device with a queue only Python counts, and nothing is said of the first op of a phase either: the device
    waits there for what the host did since its queue ran empty, and a phase begins with a look at all parameters. The
    profiler slows dispatching only, so that this time is the same in a plain step, and more of its smaller gap.

    first: what is known to be no dispatch before the first op of the step [ns].
    """
    queued = analysis.has_queue
    idle = host.python if queued else host.all
    if not host.whole or not len(idle):
        return np.zeros(len(idle))
    found: Array = np.where(idle > host.usual * host.times, idle - host.median * host.times, 0.0)
    found[_begins(analysis.profile) if queued else first_op(analysis.profile)] = 0.0
    if first:
        found[first_op(analysis.profile)] = first
    plain = min(host.whole, 1e9 * analysis.gap) if queued and analysis.gap > 0 else host.whole
    return found / max(plain, float(found.sum()))


def first_op(profile: Profile) -> int:
    """The op that a step begins with."""
    return _first(profile, range(len(profile.ops)))


def _begins(profile: Profile) -> list[int]:
    """The first op of each phase."""
    phases = [op.phase for op in profile.ops]
    return [
        _first(profile, [number for number, one in enumerate(phases) if one == phase]) for phase in sorted(set(phases))
    ]


def _first(profile: Profile, ops: Sequence[int]) -> int:
    return min(ops, key=lambda number: profile.ops[number].start_ns)


def _before(analysis: Analysis) -> Array:
    """Time before each op in which no other ran, in the representative step [ns]."""
    profile = analysis.profile
    start = np.asarray([op.start_ns for op in profile.ops], np.float64)
    end = start + np.asarray([np.mean(op.own_ns) if op.own_ns else 0.0 for op in profile.ops], np.float64)
    order = np.argsort(start, kind="stable")
    # What of an op another one overlaps is counted once: the latest end so far.
    ended = np.concatenate([[0.0], np.maximum.accumulate(end[order])])
    idle = np.zeros(len(start))
    idle[order] = np.maximum(0.0, start[order] - ended[:-1])
    return idle
