"""Two runs with their ops matched and their gaps split: what the rows of an account are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from roofline.analysis.bootstrap import Interval, interval
from roofline.analysis.gap_parts import HostTime
from roofline.comparison.account.row import Amount, OpChange
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.matching import Matching, match
from roofline.comparison.merged_products import one_to_one
from roofline.comparison.terms import Comparison, Side
from roofline.core.executor import dispatched_alike
from roofline.core.schema import Signature
from roofline.core.vocabulary import CLASSES

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Run:
    """One run: its segments, its gap, and the time that dispatching each segment takes [s], shape (segments,)."""

    side: Side
    host: HostTime
    dispatch: Array

    @cached_property
    def seconds(self) -> Array:
        """Time of each segment with its dispatching [s]."""
        return np.asarray(self.side.seconds + self.dispatch)

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """Scope of each segment, with numbers as "*", so that equal layers are one place."""
        profile = self.side.analysis.profile
        starred = [_NUMBER.sub("*", scope) for scope in profile.scopes]
        of_op = [starred[op.scope] for op in profile.ops]
        return tuple(of_op[op] for op in self.side.segments.op.tolist())

    @cached_property
    def names(self) -> tuple[tuple[str, str | None], ...]:
        """Name and type of the op of each segment; of a part without a name of its own, its kernel's name."""
        some = self.side.segments
        pairs = zip(some.signature, some.whole, strict=True)
        return tuple((whole.name if part.name in CLASSES else part.name, _type(part)) for part, whole in pairs)

    @cached_property
    def executions(self) -> Array:
        """How often a step executes the op of each segment."""
        some = self.side.segments
        times = np.asarray([op.times for op in self.side.analysis.profile.ops], np.float64)
        return np.asarray(times[some.op] / some.times)

    def amount(self, rows: Rows, dispatch: float | None = None) -> Amount:
        """Sum the work of some segments; dispatch: of dispatching them, where it is not each one's own [s]."""
        some = self.side.segments
        own, floor, moved = float(self.side.own[rows].sum()), float(some.floor[rows].sum()), some.bytes[rows]
        dispatch = float(self.dispatch[rows].sum()) if dispatch is None else dispatch
        return Amount(
            launches=float(some.launches[rows].sum()),
            bytes=None if np.isnan(moved).any() else float(moved.sum()),
            seconds=float(self.side.seconds[rows].sum()) + dispatch,
            dispatch=dispatch,
            of_roof=floor / own if own > 0 and floor > 0 else None,
        )

    def drawn(self, rows: Rows, gap: float) -> Array:
        """Time of some segments and of a part of the gap [s] in each draw."""
        busy, resamples, whole = self.side.drawn(rows, np.ones(len(rows))), self.side.resamples, self.side.analysis.gap
        return np.asarray(busy + (resamples.gap * (gap / whole) if whole > 0 else gap))


@dataclass(frozen=True, slots=True)
class Runs:
    """Both runs and what was matched."""

    comparison: Comparison
    a: Run
    b: Run
    matching: Matching

    def interval(self, a: Rows, b: Rows, gap_a: float = 0.0, gap_b: float = 0.0) -> Interval | None:
        """Return the 95 % interval of the time of some segments and parts of the gaps [s], of A less B."""
        drawn = self.a.drawn(a, gap_a) - self.b.drawn(b, gap_b)
        return interval(drawn, self.a.side.resamples, self.b.side.resamples)

    def changes(self, a: Rows, b: Rows, *, dispatch: bool) -> tuple[OpChange, ...]:
        """List the ops of some segments by name and type, those with most time in either run first.

        dispatch: whether their seconds hold what dispatching them takes.
        """
        counts: dict[tuple[str, str | None], list[float]] = {}
        times: dict[tuple[str, str | None], list[float]] = {}
        for number, (run, rows) in enumerate(((self.a, a), (self.b, b))):
            seconds = run.seconds if dispatch else run.side.seconds
            for row in rows.tolist():
                counts.setdefault(run.names[row], [0.0, 0.0])[number] += float(run.executions[row])
                times.setdefault(run.names[row], [0.0, 0.0])[number] += float(seconds[row])
        return tuple(
            OpChange(name=key[0], type=key[1], a=counts[key][0], b=counts[key][1], seconds=one - other)
            for key, (one, other) in sorted(times.items(), key=lambda item: -max(item[1]))
        )

    def ranked_scopes(self, a: Rows, b: Rows) -> Sequence[str]:
        """List the scopes of some segments, the one with most time first."""
        seconds: dict[str, float] = {}
        for run, rows in ((self.a, a), (self.b, b)):
            for row in rows.tolist():
                scope = run.scopes[row]
                seconds[scope] = seconds.get(scope, 0.0) + float(run.seconds[row])
        return sorted(seconds, key=lambda scope: -seconds[scope])


def _type(part: Signature) -> str | None:
    """Return the type of an op; of a product of float32 data what it is computed in, as TF32, where that is known."""
    used = part.precision
    return used.arithmetic if used and used.inputs == "fp32" and used.arithmetic else part.dtype


def match_runs(comparison: Comparison) -> Runs:
    """Match the ops of two runs and split their gaps."""
    a, b = comparison.work.a.segments, comparison.work.b.segments
    if not dispatched_alike(comparison.a.profile, comparison.b.profile):  # else whoever wrote the program merged them
        a, b = one_to_one(a, b)
    one, other = (_run(replace(side, segments=some)) for side, some in ((comparison.work.a, a), (comparison.work.b, b)))
    return Runs(comparison, one, other, match(a, b))


def _run(side: Side) -> Run:
    host, some = side.analysis.host_time, side.segments
    return Run(side, host, host.dispatch[some.op] * some.weight)
