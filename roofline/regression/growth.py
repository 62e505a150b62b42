"""One measure of a step against its limit, and the places where it grew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from roofline.analysis.analysis import WorkAnalysis
from roofline.core.schema import Op
from roofline.regression.limits import ROUNDING, Limit

Status = Literal["passed", "failed", "unresolved", "skipped"]
Measure = Literal[
    "time",
    "gap",
    "memory",
    "model FLOPs",
    "executed FLOPs",
    "bytes",
    "kernels",
    "unknown work",
    "graph breaks",
    "opaque",
]
#: What is summed over the ops of a step: of the op in a row.
Of = Callable[[WorkAnalysis, int, Op], float]
_Places = dict[tuple[str, ...], dict[str, float]]

#: Causes that a failed gate names.
CAUSES = 3
#: A place that grew by less than this share of what the first one grew by is not worth naming.
_LEAST_CAUSE = 0.01


@dataclass(frozen=True, slots=True)
class GrownPlace:
    """Where a measure grew: place is (phase, block, class) or empty, what the op or reason that grew most there.

    Of a time it is a row of the account, block is None, and what is the row's sentence. amount: how much it grew, in
    the unit of the measure; ops: how many ops more; None where that says nothing.
    """

    place: tuple[str | None, ...]
    what: str
    amount: float
    ops: int | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """One measure against its limit. Times in seconds, the gap as a share of the wall; None is not known.

    phase: of which phase it is, None for the step. growth: as the limit is, a share of the baseline or absolute;
    interval: its 95 % interval, of times. causes: the places that grew most, of a failed or unresolved gate. note: why
    it was not judged, or what else is to be said.
    """

    measure: Measure
    phase: str | None
    limit: Limit
    baseline: float | None
    current: float | None
    status: Status
    interval: tuple[float, float] | None = None
    causes: tuple[GrownPlace, ...] = ()
    note: str = ""

    @property
    def growth(self) -> float | None:
        """current - baseline, as a share of the baseline unless the limit is absolute; infinite from nothing."""
        if self.baseline is None or self.current is None:
            return None
        return self.limit.growth(self.baseline, self.current)


def judged(
    measure: Measure, phase: str | None, limit: Limit, before: float, after: float, causes: Sequence[GrownPlace]
) -> Gate:
    """A gate that both values decide; causes: most first, told if it failed."""
    failed = not limit.allows(limit.growth(before, after))
    status: Status = "failed" if failed else "passed"
    return Gate(measure, phase, limit, before, after, status, None, told(causes) if failed else ())


def skipped(measure: Measure, limit: Limit, why: str) -> Gate:
    """A gate that cannot be judged."""
    return Gate(measure, None, limit, None, None, "skipped", note=why)


def told(causes: Sequence[GrownPlace]) -> tuple[GrownPlace, ...]:
    """The first causes, without those that are nothing next to the first."""
    return tuple(cause for cause in causes[:CAUSES] if cause.amount >= _LEAST_CAUSE * causes[0].amount)


def most_first(cause: GrownPlace) -> tuple[float, tuple[str, ...], str]:
    """The key that sorts causes: the largest first, equal ones by name."""
    return -cause.amount, tuple(name or "" for name in cause.place), cause.what


def grown(before: WorkAnalysis, after: WorkAnalysis, of: Of, phase: str | None = None) -> list[GrownPlace]:
    """The places (phase, block, class) in which a measure of the ops grew, most first, each with its op that did."""
    (first, ops_then), (second, ops_now) = (_by_place(side, of, phase) for side in (before, after))
    causes = []
    for place, now in second.items():
        then = first.get(place, {})
        amount = sum(now.values()) - sum(then.values())
        if amount <= ROUNDING * sum(now.values()):
            continue
        by_op = {name: value - then.get(name, 0.0) for name, value in now.items()}
        most = max(by_op, key=lambda name: (by_op[name], name))
        causes.append(GrownPlace(place, most, amount, ops_now[place] - ops_then.get(place, 0)))
    return sorted(causes, key=most_first)


def _by_place(side: WorkAnalysis, of: Of, phase: str | None) -> tuple[_Places, dict[tuple[str, ...], int]]:
    """The measure by place and op, and the ops that count in it by place."""
    profile = side.profile
    sums: _Places = {}
    ops: dict[tuple[str, ...], int] = {}
    for row, op in enumerate(profile.ops):
        if phase is not None and profile.phases[op.phase] != phase:
            continue
        signature = profile.signatures[op.signature]
        place = (profile.phases[op.phase], profile.blocks[op.block], side.op_class(op))
        name = f"{signature.name} {signature.shapes}".strip()
        rows = sums.setdefault(place, {})
        value = of(side, row, op)
        rows[name] = rows.get(name, 0.0) + value
        ops[place] = ops.get(place, 0) + 1
    return sums, ops
