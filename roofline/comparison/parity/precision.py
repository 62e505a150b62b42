"""Compare the precision of two runs: what was asked for, what products ran in, and what rates prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis, per_analysis
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.comparison.parity.difference import SLIGHT, Difference, Pair, Severity
from roofline.comparison.parity.other_work import can_explain
from roofline.core.rows import per_profile
from roofline.core.schema import Op, Precision, Profile
from roofline.core.vocabulary import PRODUCTS

#: Answers to `--precision` that keep float32 data; TF32 on or off is then a switch of its own.
_FLOAT32 = frozenset(("default", "fp32", "tf32"))
#: What stands for the arithmetic of products of which nobody recorded it.
_UNKNOWN = "unknown"


def precision(pair: Pair) -> list[Difference]:
    """Compare precisions. Each difference can explain |t_A - t_B| of the products that it is about, and no more."""
    asked = pair.each(lambda run: run.profile.precision)
    # Both keep float32 data: `_arithmetics` says what that changed.
    severity: Severity = "named" if {*asked} <= _FLOAT32 else "refused"
    differing = pair.compare("precision", asked, "Different precisions were asked for", severity)
    return [*_fp64(pair), *(differing or _inputs(pair)), *_arithmetics(pair), *_rates(pair)]


def products_differ(a: WorkAnalysis, b: WorkAnalysis) -> list[tuple[str, str, str]]:
    """List in what the products of two runs differ, with that of a and of b, in shares of the executed FLOPs."""
    differences = []
    for aspect, of in (("data of products", _data), ("arithmetic of float32 products", _arithmetic)):
        shares_a, shares_b = (_shares(_flops(run.profile, of)) for run in (a, b))
        if _are_apart(shares_a, shares_b):
            differences.append((aspect, _mix(shares_a), _mix(shares_b)))
    return differences


def _fp64(pair: Pair) -> list[Difference]:
    """Refuse fp64 products in one run only where their time can explain why one is slower, else name them."""
    a, b = pair.each(lambda run: _flops(run.profile, _data).get("fp64", 0.0))
    if bool(a) == bool(b):
        return []
    seconds = pair.apart_where(lambda run, op: _data(run.profile, op) == "fp64") or 0.0
    severity: Severity = "refused" if can_explain(pair, (seconds, 0.0) if a else (0.0, seconds)) else "named"
    text = "Matmuls run in fp64 in one run only"
    return [pair.differ("fp64", (units.flop(a), units.flop(b)), text, severity, seconds)]


def _inputs(pair: Pair) -> list[Difference]:
    """Compare the types of data of runs that were asked for one precision, weighed by executed FLOPs.

    Frameworks keep other layers in float32 under the same mixed policy, which is named. Where no precision was asked
    for, the models themselves were cast differently, which is refused.
    """
    shares = pair.each(lambda run: _shares(_flops(run.profile, _data), without="fp64"))
    if not _are_apart(*shares):
        return []
    values = _data_words(pair.a, shares[0]), _data_words(pair.b, shares[1])
    text, seconds = "Matmuls take data of different types", pair.apart("group", "matmul")
    if pair.a.profile.precision in _FLOAT32:
        return [pair.differ("data types", values, text, "refused", seconds)]
    return [pair.differ("data types", values, f"{text} under the same policy", seconds=seconds)]


def _data_words(run: Analysis, shares: Mapping[str, float]) -> str:
    """Say the types of data; of float32 data also what they are computed in, where that is not float32."""
    arithmetic = _shares(_flops(run.profile, _arithmetic))
    if {*arithmetic} <= {"fp32", _UNKNOWN}:
        return _mix(shares)
    fp32 = f"fp32 (computed in {_mix(arithmetic)})"
    return _mix({fp32 if name == "fp32" else name: share for name, share in shares.items()})


def _arithmetics(pair: Pair) -> list[Difference]:
    """Compare what float32 products are computed in: TF32, bf16 passes or IEEE, weighed by executed FLOPs."""
    a, b = pair.each(lambda run: _shares(_flops(run.profile, _arithmetic)))
    if _are_apart(a, b):
        text = "Float32 matmuls are computed in different arithmetic"
        return [pair.differ("tf32", (_mix(a), _mix(b)), text, seconds=_float32(pair))]
    switches = pair.each(_switch)
    return (
        [] if None in switches else pair.compare("tf32", switches, "The TF32 switches differ", seconds=_float32(pair))
    )


def _switch(run: Analysis) -> str | None:
    """Return a TF32 switch that somebody recorded under that name: "on" or "off"."""
    value = run.profile.switches.get("tf32")
    return None if value is None else "on" if value.lower() in ("on", "true", "1", "tf32") else "off"


def _rates(pair: Pair) -> list[Difference]:
    """Float32 products faster than the fp32 ceiling prove TF32 or lower, whatever the switch says; slower: nothing.

    The rate is that of all such products together, of those that are said to be fp32 and of those of which nothing is
    said. In both runs it is no difference.
    """
    rates = pair.each(_above_fp32)
    if (rates[0] is None) == (rates[1] is None):
        return []
    names = sorted({*_flops((pair.a if rates[1] is None else pair.b).profile, _arithmetic)} - {"tf32", _UNKNOWN})
    claimed = f"said to be {' and '.join(names)}" if names else "of float32 data whose arithmetic is not known"
    text = f"Matmuls {claimed} ran faster than the fp32 ceiling, so with TF32 or less, in one run only"
    a, b = ("no proof" if rate is None else units.flop_rate(rate) for rate in rates)
    return [pair.differ("precision by rate", (a, b), text, seconds=_float32(pair))]


@per_analysis
def _above_fp32(run: Analysis) -> float | None:
    """Return the rate of float32 products [FLOP/s] where no fp32 unit of the device is so fast, else None."""
    peak = run.device.rate("matrix.fp32")
    if peak is None:
        return None
    flops = seconds = 0.0
    for row, op in enumerate(run.profile.ops):
        work = run.profile.signatures[op.signature].cost.flops
        # Fewer products than counted (Winograd, FFT) are fast for another reason.
        if work and _arithmetic(run.profile, op) not in (None, "tf32") and not run.table.exempt[row]:
            flops += work
            # As measured: a uniform scale is bookkeeping.
            seconds += float(run.table.own[row]) / run.scale
    tolerance = max(ABOVE_TOLERANCE, run.device.uncertainty("matrix.fp32"))
    rate = flops / seconds if seconds > 0 else 0.0
    return rate if rate > peak * (1 + tolerance) else None


def _float32(pair: Pair) -> float | None:
    """Return |t_A - t_B| [s] of products of float32 data: what others take has nothing to do with their arithmetic."""
    return pair.apart_where(lambda run, op: _arithmetic(run.profile, op) is not None)


def _precision(profile: Profile, op: Op) -> Precision | None:
    """Return that of the op, or of the first of its constituents that has one."""
    signatures = profile.signatures
    precisions = (signatures[number].precision for number in (op.signature, *op.constituents))
    return next((precision for precision in precisions if precision is not None), None)


def _data(profile: Profile, op: Op) -> str | None:
    """Return the type of the data of an op that multiplies matrices; None of others, and where it is not known."""
    signature, used = profile.signatures[op.signature], _precision(profile, op)
    if not signature.cost.flops:
        return None
    return used.inputs if used else signature.computes_in if signature.op_class in PRODUCTS else None


def _arithmetic(profile: Profile, op: Op) -> str | None:
    """Return the arithmetic of an op that multiplies float32 data; None of others."""
    used = _precision(profile, op)
    return (used.arithmetic or _UNKNOWN) if used and used.inputs == "fp32" else None


@per_profile
def _flops(profile: Profile, of: Callable[[Profile, Op], str | None]) -> Mapping[str, float]:
    """Add up the executed matrix FLOPs by what `of` says of an op."""
    flops_by_name: dict[str, float] = {}
    for op in profile.ops:
        flops = profile.signatures[op.signature].cost.flops
        if flops and (name := of(profile, op)):
            flops_by_name[name] = flops_by_name.get(name, 0.0) + flops
    return flops_by_name


def _shares(flops: Mapping[str, float], without: str = "") -> dict[str, float]:
    total = sum(work for name, work in flops.items() if name != without)
    return {name: work / total for name, work in flops.items() if name != without}


def _are_apart(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    """Return whether shares of both runs differ, as far as they are known."""
    return bool(a and b) and any(abs(a.get(name, 0.0) - b.get(name, 0.0)) > SLIGHT for name in {*a, *b})


def _mix(shares: Mapping[str, float]) -> str:
    """Say "tf32" or "tf32 98.0 %, fp32 2.0 %"."""
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ranked[0][0] if len(ranked) == 1 else ", ".join(f"{name} {units.percent(part)}" for name, part in ranked)
