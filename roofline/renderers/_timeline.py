"""Build the representative step in time: the times of ops, and the stretches without any. No format draws here.

It is the first profiled step that was kept: starts, own times and length are those of this one step, as profiled. Its
idle stretches hold the profiler's cost; the gap of plain steps may be smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roofline.analysis.analysis import Analysis
from roofline.core.schema import Op
from roofline.core.vocabulary import GROUP_OF, Group
from roofline.errors import InputError
from roofline.renderers._words import plain

#: Idle stretches and the idle time that was observed agree within this share of the step, or starts and own times do
#: not say when ops ran. By choice: of 158 measured profiles the largest difference is 0.011; of a replayed graph, whose
#: kernels are rows of all their launches, it was 0.59.
_AGREE = 0.02
#: Times are whole nanoseconds: a shorter stretch is rounding [s].
_NONE = 0.5e-9

#: What the host did while no op ran, as the op that ends the stretch has it recorded.
Cause = Literal[
    "host in the framework", "host in Python", "host reads a result", "after the last op", "cause not recorded"
]
CAUSES: tuple[Cause, ...] = (
    "host in the framework",
    "host in Python",
    "host reads a result",
    "after the last op",
    "cause not recorded",
)


@dataclass(frozen=True, slots=True)
class Span:
    """An op in the step, `start` to `end` [s]. row: of the profile's ops."""

    row: int
    start: float
    end: float
    group: Group


@dataclass(frozen=True, slots=True)
class Idle:
    """A stretch in which no op ran, `start` to `end` [s]; before: the row of the op that ends it, None at the end."""

    start: float
    end: float
    cause: Cause
    before: int | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step of `wall` [s], as profiled: ops by their start, and idle stretches in turn."""

    wall: float
    spans: tuple[Span, ...]
    idle: tuple[Idle, ...]

    @property
    def idle_seconds(self) -> float:
        """Sum all idle stretches [s]."""
        return sum(stretch.end - stretch.start for stretch in self.idle)

    def by_cause(self) -> dict[Cause, float]:
        """Sum the idle time by cause [s]; causes without any are absent."""
        sums = dict.fromkeys(CAUSES, 0.0)
        for stretch in self.idle:
            sums[stretch.cause] += stretch.end - stretch.start
        return {cause: seconds for cause, seconds in sums.items() if seconds > 0}


def timeline(analysis: Analysis) -> Timeline:
    """Build the representative step. InputError where the profile lacks starts of its ops, or has only pieces."""
    profile, profiled = analysis.profile, analysis.profile.profiled
    name = f"{plain(profile.model, 60)} on {plain(profile.backend, 60)}"
    if profiled is None or not profile.ops:
        raise InputError(f"{name} has no ops, so there is no timeline: measure it again.")
    if len(profile.ops) > 1 and not any(op.start_ns for op in profile.ops):
        raise InputError(f"{name} does not say when its ops began, so there is no timeline: measure it again.")
    order = sorted(
        (row for row, op in enumerate(profile.ops) if op.own_ns[0] > 0), key=lambda row: _start(analysis, row)
    )
    spans = tuple(
        Span(
            row,
            _start(analysis, row),
            _start(analysis, row) + profile.ops[row].own_ns[0] * 1e-9,
            GROUP_OF[analysis.op_class(profile.ops[row])],
        )
        for row in order
    )
    wall = max([profiled.walls[0], *(span.end for span in spans)])
    idle, free = [], 0.0
    for span in spans:
        if span.start - free > _NONE:
            idle.append(Idle(free, span.start, _cause(profile.ops[span.row]), span.row))
        free = max(free, span.end)
    if wall - free > _NONE:
        idle.append(Idle(free, wall, "after the last op", None))
    line_of_ops = Timeline(wall, spans, tuple(idle))
    if profiled.idle:
        # What the profiler cost was taken off the observed idle time.
        observed = profiled.idle[0] + profiled.walls[0] - profiled.corrected[0]
        if abs(line_of_ops.idle_seconds - observed) > _AGREE * wall:
            raise InputError(
                f"{name} was recorded with ops in several pieces whose times are not kept, so there is no timeline: "
                "draw --kind bound, which needs none."
            )
    return line_of_ops


def _start(analysis: Analysis, row: int) -> float:
    return max(0, analysis.profile.ops[row].start_ns) * 1e-9


def _cause(op: Op) -> Cause:
    """Say why no op ran before an op: the activity of the host for most of that time."""
    if op.host_ns is None or not any(op.host_ns):  # of queued kernels it is no matter of the host
        return "cause not recorded"
    framework, python = op.host_ns
    if op.host_reads:
        return "host reads a result"
    return "host in Python" if python > framework else "host in the framework"
