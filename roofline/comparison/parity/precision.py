"""Whether two runs compute in the same precision: what was asked for, what products ran in, and what rates prove."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.comparison.parity.difference import SLIGHT, Difference, Pair, Severity
from roofline.comparison.parity.other_work import can_explain
from roofline.core.schema import Op, Precision, Profile
from roofline.core.vocabulary import PRODUCTS

#: Answers to `--precision` that keep float32 data; TF32 on or off is then a switch of its own.
_FLOAT32 = frozenset(("default", "fp32", "tf32"))
#: What stands for the arithmetic of products of which nobody recorded it.
_UNKNOWN = "unknown"


def precision(pair: Pair) -> list[Difference]:
    """All differences in precision. Each can explain |t_A - t_B| of the products that it is about, and no more."""
    return [*_fp64(pair), *_asked(pair), *_inputs(pair), *_arithmetic(pair), *_rates(pair)]


def products_differ(a: WorkAnalysis, b: WorkAnalysis) -> list[tuple[str, str, str]]:
    """In what the products of two runs differ: what it is, and that of a and of b, in shares of the executed FLOPs."""
    found = []
    for what, of in (("data of products", _by_inputs), ("arithmetic of float32 products", _by_arithmetic)):
        one, other = _shares(of(a)), _shares(of(b))
        if one and other and not _close(one, other):
            found.append((what, _mix(one), _mix(other)))
    return found


def _fp64(pair: Pair) -> list[Difference]:
    """fp64 products in one run only are refused where their time can explain why one is slower, else named."""
    a, b = pair.each(lambda run: _by_inputs(run).get("fp64", 0.0))
    if bool(a) == bool(b):
        return []

    seconds = pair.apart_where(lambda run, op: _type_of_product(run, op) == "fp64") or 0.0
    severity: Severity = "refused" if can_explain(pair, (seconds, 0.0) if a else (0.0, seconds)) else "named"
    text = "Matrix products are done in fp64 in one run only"
    return [pair.differ("fp64", (units.flop(a), units.flop(b)), text, severity, seconds)]


def _asked(pair: Pair) -> list[Difference]:
    """Another precision asked for is refused, unless both keep float32 data: `_arithmetic` says what that changed."""
    a, b = pair.a.profile.precision, pair.b.profile.precision
    if a == b:
        return []
    kept = {a, b} <= _FLOAT32
    return [pair.differ("precision", (a, b), "Different precisions were asked for", "named" if kept else "refused")]


def _inputs(pair: Pair) -> list[Difference]:
    """Types of the data that products are made of, weighed by executed FLOPs.

    Frameworks keep other layers in float32 under the same mixed policy, which is named. Where no precision was asked
    for, the models themselves were cast differently, which is refused.
    """
    a, b = pair.each(lambda run: _shares(_by_inputs(run), drop="fp64"))
    if pair.a.profile.precision != pair.b.profile.precision or not a or not b or _close(a, b):
        return []  # told by `_asked`
    refused = pair.a.profile.precision in _FLOAT32
    words = _data_words(pair.a, a), _data_words(pair.b, b)
    text = "Matrix products take data of different types" + ("" if refused else " under the same policy")
    return [pair.differ("data types", (words[0], words[1]), text, "refused" if refused else "named", _matmul(pair))]


def _data_words(run: Analysis, shares: dict[str, float]) -> str:
    """Say the types of data; of float32 data also what they are computed in, where that is not float32."""
    arithmetic = _shares(_by_arithmetic(run))
    if not {*arithmetic} - {"fp32", _UNKNOWN}:
        return _mix(shares)
    return _mix(
        {f"{name} (computed in {_mix(arithmetic)})" if name == "fp32" else name: shares[name] for name in shares}
    )


def _arithmetic(pair: Pair) -> list[Difference]:
    """What float32 products are computed in: TF32, bf16 passes or IEEE, weighed by executed FLOPs."""
    a, b = pair.each(lambda run: _shares(_by_arithmetic(run)))
    text = "Float32 products are computed in different arithmetic"
    if a and b and not _close(a, b):
        return [pair.differ("tf32", (_mix(a), _mix(b)), text, seconds=_float32(pair))]
    switches = pair.each(lambda run: _switch(run.profile))
    if None not in switches and switches[0] != switches[1]:
        return [pair.differ("tf32", switches, "The TF32 switches differ", seconds=_float32(pair))]
    return []


def _rates(pair: Pair) -> list[Difference]:
    """Float32 products faster than the fp32 ceiling prove TF32 or lower, whatever the switch says; slower: nothing.

    The rate is that of all such products together, of those that are said to be fp32 and of those of which nothing is
    said. In both runs it is no difference.
    """
    a, b = pair.each(_above_fp32)
    if (a is None) == (b is None):
        return []
    run = pair.a if b is None else pair.b
    names = sorted({*_by_arithmetic(run)} - {"tf32", _UNKNOWN})
    said = f"said to be {' and '.join(names)}" if names else "of float32 data whose arithmetic is not known"
    shown = ("no proof" if a is None else units.flop_rate(a), "no proof" if b is None else units.flop_rate(b))
    text = f"Products {said} ran faster than the fp32 ceiling, so with TF32 or less, in one run only"
    return [pair.differ("precision by rate", shown, text, seconds=_float32(pair))]


def _above_fp32(analysis: Analysis) -> float | None:
    """The rate of float32 products [FLOP/s] where no fp32 unit of the device is so fast, else None."""
    peak = analysis.device.rate("matrix.fp32")
    if peak is None:
        return None
    flops = seconds = 0.0
    for row, op in enumerate(analysis.profile.ops):
        used = _precision(analysis, op)
        work = analysis.profile.signatures[op.signature].cost.flops
        # Fewer products than counted (Winograd, FFT) are fast for another reason.
        if used and work and used.inputs == "fp32" and used.arithmetic != "tf32" and not analysis.table.exempt[row]:
            flops += work
            # As measured: a uniform scale is bookkeeping.
            seconds += float(analysis.table.own[row]) / analysis.scale
    tolerance = max(ABOVE_TOLERANCE, analysis.device.uncertainty("matrix.fp32"))
    rate = flops / seconds if seconds > 0 else 0.0
    return rate if rate > peak * (1 + tolerance) else None


def _precision(analysis: WorkAnalysis, op: Op) -> Precision | None:
    """That of the op, or of the first of its constituents that has one."""
    signatures = analysis.profile.signatures
    for number in (op.signature, *op.constituents):
        if signatures[number].precision is not None:
            return signatures[number].precision
    return None


def _by_inputs(analysis: WorkAnalysis) -> dict[str, float]:
    """Executed matrix FLOPs by the type of the data."""
    found: dict[str, float] = {}
    for op in analysis.profile.ops:
        name = _type_of_product(analysis, op)
        if name:
            found[name] = found.get(name, 0.0) + (analysis.profile.signatures[op.signature].cost.flops or 0.0)
    return found


def _type_of_product(analysis: WorkAnalysis, op: Op) -> str | None:
    """Return the type of the data of an op that multiplies matrices; None of others, and where it is not known."""
    signature, used = analysis.profile.signatures[op.signature], _precision(analysis, op)
    if not signature.cost.flops:
        return None
    return used.inputs if used else signature.computes_in if signature.op_class in PRODUCTS else None


def _by_arithmetic(analysis: WorkAnalysis) -> dict[str, float]:
    """Executed matrix FLOPs of float32 data by arithmetic."""
    found: dict[str, float] = {}
    for op in analysis.profile.ops:
        signature, used = analysis.profile.signatures[op.signature], _precision(analysis, op)
        if used and used.inputs == "fp32" and signature.cost.flops:
            name = used.arithmetic or _UNKNOWN
            found[name] = found.get(name, 0.0) + signature.cost.flops
    return found


def _shares(work: dict[str, float], drop: str = "") -> dict[str, float]:
    kept = {name: flops for name, flops in work.items() if name != drop and flops > 0}
    whole = sum(kept.values())
    return {name: flops / whole for name, flops in kept.items()}


def _close(a: dict[str, float], b: dict[str, float]) -> bool:
    return all(abs(a.get(name, 0.0) - b.get(name, 0.0)) <= SLIGHT for name in {*a, *b})


def _mix(shares: dict[str, float]) -> str:
    """ "tf32" or "tf32 98.0 %, fp32 2.0 %"."""
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ranked[0][0] if len(ranked) == 1 else ", ".join(f"{name} {units.percent(part)}" for name, part in ranked)


def _switch(profile: Profile) -> str | None:
    """A TF32 switch that somebody recorded under that name: "on" or "off"."""
    value = profile.switches.get("tf32")
    return None if value is None else "on" if value.lower() in ("on", "true", "1", "tf32") else "off"


def _matmul(pair: Pair) -> float | None:
    return pair.apart("group", ("matmul",))


def _float32(pair: Pair) -> float | None:
    """The same of products of float32 data alone: what others take has nothing to do with their arithmetic."""

    def chosen(run: Analysis, op: Op) -> bool:
        used = _precision(run, op)
        return used is not None and used.inputs == "fp32"

    return pair.apart_where(chosen)
