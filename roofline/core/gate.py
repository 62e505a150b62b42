"""A gate on causes as well as time: whether a step got worse than a baseline, by how much, and where.

Counts (FLOPs, bytes, kernels, ops of unknown work, graph breaks, opaque regions) are the same on every run and every
machine, so a limit is a limit. Times are not: a gate of a time fails only where the growth is beyond its limit and its
95 % interval excludes the limit, too; between the two it is not resolved. A gate that cannot be judged says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roofline.core.analysis import Analysis, analyze
from roofline.core.profile import Op, Profile, slug
from roofline.errors import InputError, MeasurementError

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

#: Flags of a profile whose times cannot be judged.
UNUSABLE = ("contended", "throttled", "inflated")
#: Causes that a failed gate names.
CAUSES = 3
#: A place that grew by less than this share of what the first one grew by is not worth naming.
_LEAST_CAUSE = 0.01
#: Sums of the same numbers in another order differ by less than this share.
ROUNDING = 1e-9
#: A limit beyond this many times the baseline, or this many kernels, is a mistake in writing.
_LARGEST_SHARE, _LARGEST_COUNT = 100.0, 10**9


@dataclass(frozen=True, slots=True)
class Limit:
    """How much more than the baseline is allowed: a share of it, or (absolute) a number of things or of points."""

    value: float
    absolute: bool = False

    def allows(self, growth: float) -> bool:
        """Whether the growth, a share or an absolute one, is within the limit."""
        return growth <= self.value + ROUNDING


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of `roofline check`; gap is in points of the wall."""

    time: Limit = Limit(0.05)
    bytes: Limit = Limit(0.01)
    kernels: Limit = Limit(0, absolute=True)
    gap: Limit = Limit(0.03, absolute=True)
    memory: Limit = Limit(0.02)


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a measure grew: place is (phase, block, class) or empty, what the op or reason that grew most there.

    amount: how much it grew, in the unit of the measure; ops: how many ops more; None where that says nothing.
    """

    place: tuple[str, ...]
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
    causes: tuple[Cause, ...] = ()
    note: str = ""

    @property
    def growth(self) -> float | None:
        """current - baseline, as a share of the baseline unless the limit is absolute; infinite from nothing."""
        if self.baseline is None or self.current is None:
            return None
        return _growth(self.baseline, self.current, self.limit)


@dataclass(frozen=True, slots=True)
class Result:
    """All gates, and what else is different between the two profiles (name, baseline's, current's)."""

    baseline: Analysis
    current: Analysis
    counts_only: bool
    gates: tuple[Gate, ...]
    differences: tuple[tuple[str, str, str], ...]

    @property
    def failed(self) -> tuple[Gate, ...]:
        """The gates that say no."""
        return tuple(gate for gate in self.gates if gate.status == "failed")


def share(text: str, option: str) -> Limit:
    """A limit written as "5%" or "0.05". InputError for anything else."""
    return Limit(_number(text, option))


def points(text: str, option: str) -> Limit:
    """The same, in points of the wall."""
    return Limit(_number(text, option), absolute=True)


def count(text: str, option: str) -> Limit:
    """A limit written as a whole number of things, or as "5%" of the baseline's."""
    if text.strip().endswith("%"):
        return share(text, option)
    if not re.fullmatch(r"\s*\d{1,12}\s*", text, re.ASCII) or int(text) > _LARGEST_COUNT:
        raise InputError(f"{option} {_short(text)} is no limit: give a whole number, or a percentage like 5%.")
    return Limit(int(text), absolute=True)


def _number(text: str, option: str) -> float:
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})\s*(%?)\s*", text, re.ASCII)
    if match is None:
        raise InputError(f"{option} {_short(text)} is no limit: give a percentage like 5%, or a share like 0.05.")
    value = float(match[1]) / (100 if match[2] else 1)
    if value > _LARGEST_SHARE:
        raise InputError(f"{option} {_short(text)} is too large: give at most {_LARGEST_SHARE * 100:.0f}%.")
    return value


def _short(text: object) -> str:
    return repr(text if len(str(text)) <= 40 else str(text)[:39] + "…")


def check(baseline: Profile, current: Profile, limits: Limits, counts_only: bool = False) -> Result:
    """Judge `current` by `baseline`.

    counts_only: times, gap and memory are not looked at, and neither is what made them unusable.

    Raises InputError for profiles that are not of the same step (for times: not on the same device), MeasurementError
    for times that cannot be judged.
    """
    _same_step(baseline, current)
    before, after = analyze(baseline), analyze(current)
    gates = _counts(before, after, limits)
    if not counts_only:
        _same_conditions(before, after)
        gates = [*_times(before, after, limits), *gates]
    return Result(before, after, counts_only, tuple(gates), _differences(baseline, current))


# ------------------------------------------------------------------------------------- what can be judged


def _same_step(baseline: Profile, current: Profile) -> None:
    for name, profile in (("BASELINE", baseline), ("CURRENT", current)):
        if not profile.ops:
            raise InputError(f"{name} has no ops, so there is nothing to judge: measure it again.")
    for field in ("model", "mode", "size", "layers", "batch", "seq", "precision"):
        _same(field, getattr(baseline, field), getattr(current, field))
    _same("kind of device", baseline.device.kind, current.device.kind)


def _same(what: str, before: object, after: object) -> None:
    if before != after:
        raise InputError(
            f"The profiles are not of the same step: {what} is {_short(before)} in BASELINE and {_short(after)} in "
            "CURRENT; measure both alike."
        )


def _same_conditions(before: Analysis, after: Analysis) -> None:
    sides = (("BASELINE", before), ("CURRENT", after))
    for name, side in sides:
        if not side.timed:
            raise InputError(f"{name} was only counted, so it has no times to judge: add --counts-only.")
        if not side.profile.has_times:
            raise InputError(
                f"{name} holds no profiled step, so it has no times to judge: measure it again, or add --counts-only."
            )
    conditions: tuple[tuple[str, Callable[[Analysis], object]], ...] = (
        ("the device", lambda side: side.device.name),
        ("the number of threads", _threads),
        ("the protocol", lambda side: side.profile.wall.protocol),
        ("what timed the steps", lambda side: side.profile.wall.source),
    )
    for what, of in conditions:
        if of(before) != of(after):
            raise InputError(
                f"Times cannot be compared: {what} is {_short(of(before))} in BASELINE and {_short(of(after))} in "
                "CURRENT; measure both alike, or add --counts-only."
            )
    for name, side in sides:
        found = [flag for flag in UNUSABLE if any(slug(given) == flag for given in side.flags)]
        if found:
            raise MeasurementError(
                f"The times of {name} cannot be judged, it is flagged {' and '.join(found)}: measure it again on an "
                "idle machine, or add --counts-only."
            )


def _threads(side: Analysis) -> str | None:
    return side.profile.environment.get("threads") or side.device.conditions.get("threads")


def _differences(baseline: Profile, current: Profile) -> tuple[tuple[str, str, str], ...]:
    """Versions, switches, options and the backend that are not the same: what a growth may come from."""
    found = [("backend", baseline.backend, current.backend)] if baseline.backend != current.backend else []
    for before, after in (
        (baseline.options, current.options),
        (baseline.versions, current.versions),
        (baseline.switches, current.switches),
    ):
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                found.append((name, before.get(name, "none"), after.get(name, "none")))
    return tuple(found)


# ------------------------------------------------------------------------------------- times


def _times(before: Analysis, after: Analysis, limits: Limits) -> list[Gate]:
    sides = (before, after)
    seconds = _grown(before, after, lambda side, row, _: float(side.table.share[row]))
    more_gap = after.gap - before.gap
    by_time = sorted([*seconds, *([Cause((), "gap", more_gap)] if more_gap > 0 else [])], key=_most_first)
    walls, gaps = [side.wall_interval for side in sides], [_gap_shares(side) for side in sides]
    time = _timed("time", limits.time, (before.wall, after.wall), walls, by_time)
    gap = _timed("gap", limits.gap, (before.gap / before.wall, after.gap / after.wall), gaps, _gap_causes(*sides))
    return [time, gap, _memory(before, after, limits.memory)]


def _timed(
    measure: Measure,
    limit: Limit,
    values: tuple[float, float],
    intervals: Sequence[tuple[float, float] | None],
    causes: Sequence[Cause],
) -> Gate:
    growth = _growth(*values, limit)
    found = _interval(values, intervals, limit)
    status: Status = "passed"
    note = ""
    if not limit.allows(growth):
        resolved = found is not None and not limit.allows(found[0])
        status = "failed" if resolved else "unresolved"
        if found is None:
            note = "fewer than 3 steps give no interval"
        elif not resolved:
            note = "its 95 % interval reaches below the limit"
    return Gate(measure, None, limit, *values, status, found, _told(causes) if status != "passed" else (), note)


def _interval(
    values: tuple[float, float], intervals: Sequence[tuple[float, float] | None], limit: Limit
) -> tuple[float, float] | None:
    """The 95 % interval of the growth of two independent figures, by their own intervals.

    The distances to the ends add in squares (Zou and Donner, 2008: MOVER), of the logarithms where the growth is a
    share.
    """
    (before, after), (first, second) = values, intervals
    if first is None or second is None:
        return None
    if not limit.absolute:
        if min(before, after, *first, *second) <= 0:
            return None
        before, after = math.log(before), math.log(after)
        first, second = (math.log(first[0]), math.log(first[1])), (math.log(second[0]), math.log(second[1]))
    growth = after - before
    down = math.hypot(max(0.0, after - second[0]), max(0.0, first[1] - before))
    up = math.hypot(max(0.0, second[1] - after), max(0.0, before - first[0]))
    low, high = growth - down, growth + up
    return (low, high) if limit.absolute else (math.expm1(low), math.expm1(high))


def _gap_shares(side: Analysis) -> tuple[float, float] | None:
    found = side.gap_interval
    return None if found is None else (found[0] / side.wall, found[1] / side.wall)


def _gap_causes(before: Analysis, after: Analysis) -> list[Cause]:
    """Which cause of the gap grew most [s], where both profiles know them."""
    first, second = before.gap_causes, after.gap_causes
    if first is None or second is None:
        return []
    grown = [Cause((), name, seconds - first.get(name, 0.0)) for name, seconds in second.items()]
    return sorted((cause for cause in grown if cause.amount > 0), key=_most_first)


def _memory(before: Analysis, after: Analysis, limit: Limit) -> Gate:
    first, second = before.profile.memory, after.profile.memory
    if first.peak is None or second.peak is None:
        return _skipped("memory", limit, "the peak is not known of both")
    if first.source != second.source:
        return _skipped("memory", limit, "the peaks were not read the same way")
    parts = [
        Cause((), name, now - then)
        for name, then, now in (
            ("parameters", first.parameters, second.parameters),
            ("optimizer state", first.optimizer, second.optimizer),
        )
        if then is not None and now is not None and now > then
    ]
    return _judged("memory", None, limit, first.peak, second.peak, sorted(parts, key=_most_first))


# ------------------------------------------------------------------------------------- counts

_Of = Callable[[Analysis, int, Op], float]


def _counts(before: Analysis, after: Analysis, limits: Limits) -> list[Gate]:
    gates = [
        *_flops("model FLOPs", "model_flops", before, after),
        *_flops("executed FLOPs", "flops", before, after),
        _bytes(before, after, limits.bytes),
        _kernels(before, after, limits.kernels),
        _of_ops("unknown work", before, after, _exact(), lambda side, _, op: float(not _known(side, op))),
    ]
    return [*gates, *_compiled(before, after)]


def _exact() -> Limit:
    return Limit(0, absolute=True)


def _flops(measure: Measure, field: str, before: Analysis, after: Analysis) -> list[Gate]:
    """One gate per phase with matrix work; none of it may grow."""

    def of(side: Analysis, _: int, op: Op) -> float:
        return getattr(side.profile.signatures[op.signature].cost, field) or 0.0

    def sums(side: Analysis) -> dict[str, float]:
        found: dict[str, float] = {}
        for row, op in enumerate(side.profile.ops):
            phase = side.profile.phases[op.phase]
            found[phase] = found.get(phase, 0.0) + of(side, row, op)
        return {phase: work for phase, work in found.items() if work}

    first, second = sums(before), sums(after)
    gates = []
    for phase in dict.fromkeys([*first, *second]):
        grown = _grown(before, after, of, phase)
        gate = _judged(measure, phase, Limit(0), first.get(phase, 0.0), second.get(phase, 0.0), grown)
        less = measure == "model FLOPs" and gate.growth is not None and gate.growth < -ROUNDING
        gates.append(replace(gate, note="the program asks for less than in BASELINE") if less else gate)
    return gates


def _bytes(before: Analysis, after: Analysis, limit: Limit) -> Gate:
    def of(side: Analysis, _: int, op: Op) -> float:
        cost = side.profile.signatures[op.signature].cost
        return (cost.bytes_read or 0.0) + (cost.bytes_written or 0.0)

    if not (before.total.costed and after.total.costed):
        return _skipped("bytes", limit, "the work of no op is known")
    gate = _of_ops("bytes", before, after, limit, of)
    known = [f"{side.total.costed} of {side.total.ops}" for side in (before, after)]
    if before.total.ops - before.total.costed == after.total.ops - after.total.costed:
        return gate
    return replace(gate, note=f"known of {known[0]} ops in BASELINE and {known[1]} in CURRENT")


def _kernels(before: Analysis, after: Analysis, limit: Limit) -> Gate:
    if before.device.kind != "cpu" and before.timed != after.timed:
        return _skipped("kernels", limit, "one profile was only counted, and only a timed one knows its launches")
    return _of_ops("kernels", before, after, limit, lambda side, _, op: float(op.launches))


def _known(side: Analysis, op: Op) -> bool:
    cost = side.profile.signatures[op.signature].cost
    return cost.flops_known and cost.bytes is not None


def _of_ops(measure: Measure, before: Analysis, after: Analysis, limit: Limit, of: _Of) -> Gate:
    first, second = (sum(of(side, row, op) for row, op in enumerate(side.profile.ops)) for side in (before, after))
    return _judged(measure, None, limit, first, second, _grown(before, after, of))


def _compiled(before: Analysis, after: Analysis) -> list[Gate]:
    first, second = before.profile.compilation, after.profile.compilation
    if first is None and second is None:
        return []
    if first is None or second is None:
        why = f"only {'CURRENT' if first is None else 'BASELINE'} was compiled"
        return [_skipped("graph breaks", _exact(), why), _skipped("opaque", _exact(), why)]
    more = {why: number - first.breaks.get(why, 0) for why, number in second.breaks.items()}
    reasons = sorted((Cause((), why, number) for why, number in more.items() if number > 0), key=_most_first)
    before_breaks, after_breaks = (float(sum(side.breaks.values())) for side in (first, second))
    return [
        _judged("graph breaks", None, _exact(), before_breaks, after_breaks, reasons),
        _judged("opaque", None, _exact(), float(first.opaque), float(second.opaque), []),
    ]


# ------------------------------------------------------------------------------------- one gate


def _growth(before: float, after: float, limit: Limit) -> float:
    if limit.absolute:
        return after - before
    if before == 0:
        return math.inf if after > 0 else 0.0
    return after / before - 1


def _judged(
    measure: Measure, phase: str | None, limit: Limit, before: float, after: float, causes: Sequence[Cause]
) -> Gate:
    failed = not limit.allows(_growth(before, after, limit))
    status: Status = "failed" if failed else "passed"
    return Gate(measure, phase, limit, before, after, status, None, _told(causes) if failed else ())


def _told(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The first causes, without those that are nothing beside the first."""
    return tuple(cause for cause in causes[:CAUSES] if cause.amount >= _LEAST_CAUSE * causes[0].amount)


def _skipped(measure: Measure, limit: Limit, why: str) -> Gate:
    return Gate(measure, None, limit, None, None, "skipped", note=why)


def _most_first(cause: Cause) -> tuple[float, tuple[str, ...], str]:
    return -cause.amount, cause.place, cause.what


def _grown(before: Analysis, after: Analysis, of: _Of, phase: str | None = None) -> list[Cause]:
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
        causes.append(Cause(place, most, amount, ops_now[place] - ops_then.get(place, 0)))
    return sorted(causes, key=_most_first)


_Places = dict[tuple[str, ...], dict[str, float]]


def _by_place(side: Analysis, of: _Of, phase: str | None) -> tuple[_Places, dict[tuple[str, ...], int]]:
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
