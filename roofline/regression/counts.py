"""Make the gates of counts: FLOPs, bytes, kernels, ops of unknown work, graph breaks, opaque regions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.core.schema import Op
from roofline.regression.growth import (
    Gate,
    GrownPlace,
    Measure,
    Of,
    distinct_ops,
    grown_places,
    make_gate,
    most_first,
    skip_gate,
)
from roofline.regression.limits import ROUNDING, Limit, Limits


def counts(before: WorkAnalysis, after: WorkAnalysis, limits: Limits) -> list[Gate]:
    """Make the gates of counts; those of a compiler only where either profile was compiled."""
    gates = [
        *_flops("model FLOPs", "model_flops", before, after),
        *_flops("executed FLOPs", "flops", before, after),
        _bytes(before, after, limits.bytes),
        _kernels(before, after, limits.kernels),
        _of_ops("unknown work", before, after, _exact(), lambda side, op: float(not _is_known(side, op))),
    ]
    return [*gates, *_compiled(before, after)]


def _exact() -> Limit:
    return Limit(0, absolute=True)


def _flops(measure: Measure, field: str, before: WorkAnalysis, after: WorkAnalysis) -> list[Gate]:
    """Make a gate for each phase with matrix work; none of it may grow."""

    def of(side: WorkAnalysis, op: Op) -> float:
        return getattr(side.profile.signatures[op.signature].cost, field) or 0.0

    def sums(side: WorkAnalysis) -> dict[str, float]:
        by_phase: dict[str, float] = {}
        for op, many in distinct_ops(side.profile):
            phase = side.profile.phases[op.phase]
            by_phase[phase] = by_phase.get(phase, 0.0) + many * of(side, op)
        return {phase: work for phase, work in by_phase.items() if work}

    first, second = sums(before), sums(after)
    gates = []
    for phase in dict.fromkeys([*first, *second]):
        causes = partial(grown_places, before, after, of, phase)
        gate = make_gate(measure, phase, Limit(0), first.get(phase, 0.0), second.get(phase, 0.0), causes)
        is_less = measure == "model FLOPs" and gate.growth is not None and gate.growth < -ROUNDING
        gates.append(replace(gate, note="the program asks for less than in BASELINE") if is_less else gate)
    return gates


def _bytes(before: WorkAnalysis, after: WorkAnalysis, limit: Limit) -> Gate:
    def of(side: WorkAnalysis, op: Op) -> float:
        cost = side.profile.signatures[op.signature].cost
        return (cost.bytes_read or 0.0) + (cost.bytes_written or 0.0)

    if not (before.total.costed and after.total.costed):
        return skip_gate("bytes", limit, "the work of no op is known")
    gate = _of_ops("bytes", before, after, limit, of)
    known_ops = [f"{side.total.costed} of {side.total.ops}" for side in (before, after)]
    if before.total.ops - before.total.costed == after.total.ops - after.total.costed:
        return gate
    return replace(gate, note=f"known of {known_ops[0]} ops in BASELINE and {known_ops[1]} in CURRENT")


def _kernels(before: WorkAnalysis, after: WorkAnalysis, limit: Limit) -> Gate:
    if before.device.kind != "cpu" and isinstance(before, Analysis) != isinstance(after, Analysis):
        return skip_gate("kernels", limit, "one profile was only counted, and only a timed one knows its launches")
    return _of_ops("kernels", before, after, limit, lambda side, op: float(op.launches))


def _is_known(side: WorkAnalysis, op: Op) -> bool:
    cost = side.profile.signatures[op.signature].cost
    return cost.flops_known and cost.bytes is not None


def _of_ops(measure: Measure, before: WorkAnalysis, after: WorkAnalysis, limit: Limit, of: Of) -> Gate:
    first, second = (sum(many * of(side, op) for op, many in distinct_ops(side.profile)) for side in (before, after))
    return make_gate(measure, None, limit, first, second, partial(grown_places, before, after, of))


def _compiled(before: WorkAnalysis, after: WorkAnalysis) -> list[Gate]:
    first, second = before.profile.compilation, after.profile.compilation
    if first is None and second is None:
        return []
    if first is None or second is None:
        why = f"only {'CURRENT' if first is None else 'BASELINE'} was compiled"
        return [skip_gate("graph breaks", _exact(), why), skip_gate("opaque", _exact(), why)]
    growth = {why: number - first.breaks.get(why, 0) for why, number in second.breaks.items()}
    reasons = sorted((GrownPlace((), why, number) for why, number in growth.items() if number > 0), key=most_first)
    before_breaks, after_breaks = (float(sum(side.breaks.values())) for side in (first, second))
    return [
        make_gate("graph breaks", None, _exact(), before_breaks, after_breaks, lambda: reasons),
        make_gate("opaque", None, _exact(), float(first.opaque), float(second.opaque)),
    ]
