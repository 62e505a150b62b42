"""Build the representative step in time: the times of ops, and the stretches without any. No format draws here.

It is the first profiled step that was kept: starts, own times and length are those of this one step, as profiled. Its
idle stretches hold the profiler's cost; the gap of plain steps may be smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple, cast, get_args

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.loops import times
from roofline.analysis.columns import columns, numbered
from roofline.analysis.waits import device_waits, waits_before
from roofline.content import wording
from roofline.content.facts import host
from roofline.core.arrays import Array
from roofline.core.rows import Ints, rows
from roofline.core.schema import Profile
from roofline.core.vocabulary import GROUP_OF, GROUPS

#: Idle stretches and the idle time that was observed agree within this share of the step, or starts and own times do
#: not say when ops ran. By choice: of 158 measured profiles the largest difference is 0.011; of a replayed graph, whose
#: kernels are rows of all their launches, it was 0.59.
_AGREE = 0.02
#: Times are whole nanoseconds: a shorter stretch is rounding [s].
_NONE = 0.5e-9

#: What the host did while no op ran, or the device waited for, as the op that ends the stretch has it recorded.
Cause = Literal[
    "host in the framework",
    "host in Python",
    "host reads a result",
    "after the last op",
    "waiting for another stream",
    "waiting for an event",
    "waiting for a copy",
    "waiting, cause not recorded",
    "cause of the stretch not recorded",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)


@dataclass(frozen=True, slots=True)
class Idle:
    """The stretches in which no op ran, in turn: arrays with one entry each.

    start, end: where each lies [s]; cause: its place in `CAUSES`; before: the row of the op that ends it, -1 at the end
    of the step. recorded: whether their lengths were recorded, as means of the kept steps, of ops in several pieces,
    and are not what lies between the ops of this step.
    """

    start: Array
    end: Array
    cause: Ints
    before: Ints
    recorded: bool

    @property
    def seconds(self) -> float:
        """Sum all stretches [s]."""
        return float((self.end - self.start).sum())

    def by_cause(self) -> dict[Cause, float]:
        """Sum the stretches by cause [s]; causes without any are absent."""
        sums = np.bincount(self.cause, weights=self.end - self.start, minlength=len(CAUSES)).tolist()
        return {cause: seconds for cause, seconds in zip(CAUSES, sums, strict=True) if seconds > 0}


class Loop(NamedTuple):
    """Neighbours that run several times, the ops `first` to `last` (not included) of a `Timeline`.

    When each of them ran after its first turn is not kept: from `begin` to `end` at most [s].
    """

    first: int
    last: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step of `wall` [s], as profiled: its ops by their start, as arrays with one entry each.

    rows: of the profile's ops; start, end: of the first turn, which is as long as the mean one [s]; turns: how many
    there are; group, bound: places in `GROUPS` and `BOUNDS`. loops: where the further turns lie. idle: None where ops
    ran in several pieces whose times are not kept.
    """

    wall: float
    rows: Ints
    start: Array
    end: Array
    turns: Ints
    group: Ints
    bound: Ints
    loops: tuple[Loop, ...]
    idle: Idle | None

    def beginning(self, number: int) -> Timeline:
        """Return the step up to the end of its first ops, if it has more of them than `number`."""
        if len(self.rows) <= number:
            return self
        wall = float(self.end[:number].max())
        idle = self.idle
        if idle is not None:
            early = idle.end <= wall
            idle = Idle(
                idle.start[early], idle.end[early], idle.cause[early], idle.before[early], recorded=idle.recorded
            )
        return Timeline(
            wall,
            self.rows[:number],
            self.start[:number],
            self.end[:number],
            self.turns[:number],
            self.group[:number],
            self.bound[:number],
            tuple(loop for loop in self.loops if loop.last <= number),
            idle,
        )


def absent(analysis: WorkAnalysis) -> str:
    """Say why there is no timeline; "" where there is one."""
    profile = analysis.profile
    if profile.profiled is None:
        return "the step was counted and not timed"
    if not profile.ops:
        return "no op was recorded"
    if not profile.has_times or not profile.profiled.walls:
        return "no profiled step was kept"
    if len(profile.ops) > 1 and len(np.unique(rows(profile).start)) == 1:
        return "the profile does not say when its ops began"
    return ""


def timeline(analysis: Analysis) -> Timeline:
    """Build the step of a profile of which `absent` says nothing."""
    profile = analysis.profile
    assert profile.profiled is not None
    starts, own = rows(profile).start * 1e-9, columns(profile).steps[:, 0]
    order = np.argsort(starts, kind="stable")
    start = np.asarray(starts[order] - min(0.0, float(starts.min())), np.float64)
    turns, own = times(profile)[order], own[order]
    end: Array = start + own / turns
    kind, first = numbered(columns(profile).signature, columns(profile).phase)
    groups = [GROUPS.index(GROUP_OF[analysis.op_class(profile.ops[row])]) for row in first.tolist()]
    wall = max(profile.profiled.walls[0], float(end.max()))
    group, loops = np.asarray(groups, np.int64)[kind[order]], tuple(_loops(start, own, turns, wall))
    step = Timeline(wall, order, start, end, turns, group, analysis.table.bound[order], loops, None)
    return replace(step, idle=_idle(analysis, step))


def _loops(start: Array, own: Array, turns: Ints, wall: float) -> Iterator[Loop]:
    """Find the loops of a step: neighbours that run equally often. The next op, or the end of the step, ends the last.

    own: of all turns of each op [s].
    """
    edges = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(turns)]
    for first, last in pairwise(edges):
        if turns[first] == 1:
            continue
        begins, once = start[first:last], own[first:last] / turns[first:last]
        begin = float((begins + once).max())
        end = float(start[last]) if last < len(start) else wall
        yield Loop(first, last, begin, max(begin, min(end, begin + float((own[first:last] - once).sum()))))


def _idle(analysis: Analysis, step: Timeline) -> Idle | None:
    """Find the stretches between the ops, or, where these ran in several pieces, those that were recorded, if any."""
    profile = analysis.profile
    profiled = profile.profiled
    assert profiled is not None
    # An op of a loop counts as running until all its turns have ended: what lay between them is not kept.
    ends = step.start + (step.end - step.start) * step.turns
    reached = np.maximum.accumulate(np.concatenate([[0.0], ends]))
    begin, end, before = reached, np.append(step.start, step.wall), np.append(step.rows, -1)
    is_recorded = False
    # What the profiler cost was taken off the observed idle time.
    observed = profiled.idle[0] + profiled.walls[0] - profiled.corrected[0] if profiled.idle else None
    if observed is not None and abs(np.maximum(end - begin, 0.0).sum() - observed) > _AGREE * step.wall:
        if any(op.host_ns is None for op in profile.ops):
            return None
        # What lies behind an op of several pieces may be one of them.
        is_recorded = True
        waited = rows(profile).waited[step.rows] * 1e-9 + device_waits(profile)[step.rows]
        at_end = min(step.wall - reached[-1], max(0.0, (analysis.idle or 0.0) - waited.sum()))
        begin = np.maximum(0.0, end - np.append(waited, at_end))
    (kept,) = np.nonzero(end - begin > _NONE)
    causes = [_cause(profile, row) for row in before[kept].tolist()]
    return Idle(begin[kept], end[kept], np.asarray(causes, np.int64), before[kept], is_recorded)


def _cause(profile: Profile, row: int) -> int:
    """Return why no op ran before an op: what the host did or the device waited for, for the most of that time.

    row: of the op, -1 for the end of the step.
    """
    if row < 0:
        return CAUSES.index("after the last op")
    op = profile.ops[row]
    of_device = [wait for wait in waits_before(profile).get(row, ()) if wait.is_of_device]
    if of_device and 1e9 * float(device_waits(profile)[row]) > sum(op.host_ns or ()):
        return CAUSES.index(cast("Cause", of_device[0].cause))
    if op.host_ns is None or not any(op.host_ns):  # of queued kernels it is no matter of the host
        return CAUSES.index("cause of the stretch not recorded")
    framework, python = op.host_ns
    if op.host_reads:
        return CAUSES.index("host reads a result")
    return CAUSES.index("host in Python" if python > framework else "host in the framework")


def sentences(analysis: Analysis, step: Timeline) -> list[str]:
    """Say how long this step took and was idle, and plain steps, each in fewer and fewer words."""
    profiled = f"one profiled step {units.seconds(step.wall)}"
    if step.idle is not None:
        profiled += f", {units.seconds(step.idle.seconds)} of it idle"
    plain = f"plain steps {units.seconds(analysis.wall)}"
    if analysis.profile.wall.source != "plain":
        plain = f"in the median {units.seconds(analysis.wall)}"
    name = wording.gap_name(analysis)
    gaps = (f"{profiled}; {plain}, {name} {words(analysis)}" for words in (host.gap_in_words, host.gap_time))
    return list(dict.fromkeys((*gaps, profiled)))
