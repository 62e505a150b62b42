"""Hold a measure of a step against its limit, and find the places where it grew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from roofline.analysis.analysis import WorkAnalysis
from roofline.analysis.columns import columns, often
from roofline.core.rows import per_profile
from roofline.core.schema import Op, Profile
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
#: (analysis, op) -> the amount that is summed over the ops of a step; `distinct_ops` are asked once.
Of = Callable[[WorkAnalysis, Op], float]
_Places = dict[tuple[str, ...], dict[str, float]]

#: Causes that a failed gate names.
CAUSES = 3
#: Least growth of a place that is named, as a share of the growth of the first one.
_LEAST_CAUSE = 0.01


@dataclass(frozen=True, slots=True)
class GrownPlace:
    """Name a place where a measure grew: place is (phase, block, class) or empty, `what` the op that grew most there.

    For counts without ops, `what` is the reason. For a time the place is a row of the account: its block is None, and
    `what` is its sentence. amount: the growth in the unit of the measure; ops: the number of additional ops, None where
    that does not apply.
    """

    place: tuple[str | None, ...]
    what: str
    amount: float
    ops: int | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """Hold one measure against its limit. Times in seconds, the gap as a share of the wall; None is not known.

    phase: of the measure, None for the whole step. growth: a share of the baseline or absolute, as the limit is;
    interval: its 95 % interval, for times. causes: the places that grew most, of a failed or unresolved gate. note: the
    reason why it was not judged, or another remark.
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
        """Subtract baseline from current, as a share of the baseline unless the limit is absolute; infinite from 0."""
        if self.baseline is None or self.current is None:
            return None
        return self.limit.growth(self.baseline, self.current)


def make_gate(
    measure: Measure,
    phase: str | None,
    limit: Limit,
    before: float,
    after: float,
    causes: Callable[[], Sequence[GrownPlace]] = tuple,
) -> Gate:
    """Make a gate that both values decide; causes: finds them, most first, only if it failed."""
    if limit.allows(limit.growth(before, after)):
        return Gate(measure, phase, limit, before, after, "passed")
    return Gate(measure, phase, limit, before, after, "failed", causes=main_causes(causes()))


def skip_gate(measure: Measure, limit: Limit, why: str) -> Gate:
    """Make a gate that cannot be judged."""
    return Gate(measure, None, limit, None, None, "skipped", note=why)


def main_causes(causes: Sequence[GrownPlace]) -> tuple[GrownPlace, ...]:
    """Keep the first causes, without those that are negligible next to the first."""
    return tuple(cause for cause in causes[:CAUSES] if cause.amount >= _LEAST_CAUSE * causes[0].amount)


def most_first(cause: GrownPlace) -> tuple[float, tuple[str, ...], str]:
    """Return the key that sorts causes: the largest first, equal ones by name."""
    return -cause.amount, tuple(name or "" for name in cause.place), cause.what


@per_profile
def distinct_ops(profile: Profile) -> tuple[tuple[Op, int], ...]:
    """List the ops that differ in signature, phase, block or launches, and how many ops of the step are like each."""
    of = columns(profile)
    return tuple((profile.ops[row], many) for row, many in often(of.signature, of.phase, of.block, of.launches))


def grown_places(before: WorkAnalysis, after: WorkAnalysis, of: Of, phase: str | None = None) -> list[GrownPlace]:
    """List the places (phase, block, class) where a measure of the ops grew, most first, each with its main op."""
    (first, ops_then), (second, ops_now) = (_by_place(side, of, phase) for side in (before, after))
    causes = []
    for place, now in second.items():
        then = first.get(place, {})
        amount = sum(now.values()) - sum(then.values())
        if amount <= ROUNDING * sum(now.values()):
            continue
        by_op = {name: value - then.get(name, 0.0) for name, value in now.items()}
        main_op = max(by_op, key=lambda name: (by_op[name], name))
        causes.append(GrownPlace(place, main_op, amount, ops_now[place] - ops_then.get(place, 0)))
    return sorted(causes, key=most_first)


def _by_place(side: WorkAnalysis, of: Of, phase: str | None) -> tuple[_Places, dict[tuple[str, ...], int]]:
    """Sum the measure by place and op, and count the ops by place."""
    profile = side.profile
    sums: _Places = {}
    ops: dict[tuple[str, ...], int] = {}
    for op, many in distinct_ops(profile):
        if phase is not None and profile.phases[op.phase] != phase:
            continue
        signature = profile.signatures[op.signature]
        place = (profile.phases[op.phase], profile.blocks[op.block], side.op_class(op))
        name = f"{signature.name} {signature.shapes}".strip()
        rows = sums.setdefault(place, {})
        rows[name] = rows.get(name, 0.0) + many * of(side, op)
        ops[place] = ops.get(place, 0) + many
    return sums, ops
