"""Write a gate of `roofline check` as a sentence, and its parts."""

from __future__ import annotations

import math
from collections.abc import Callable

from roofline import units
from roofline.content import wording
from roofline.regression.growth import Gate, GrownPlace, Measure
from roofline.regression.limits import ROUNDING, Limit

_UNITS: dict[Measure, Callable[[float | None], str]] = {
    "time": units.seconds,
    "gap": units.percent,
    "memory": units.byte,
    "model FLOPs": units.flop,
    "executed FLOPs": units.flop,
    "bytes": units.byte,
}
#: What a cause is told in where that is not the unit of the measure: the gap is a share, its causes are times.
_CAUSE_UNITS: dict[Measure, Callable[[float | None], str]] = {**_UNITS, "gap": units.seconds}
_NAMES: dict[Measure, str] = {"unknown work": "ops of unknown work", "opaque": "opaque regions"}


def sentence(gate: Gate) -> str:
    """Write one gate in words: "bytes +12.1 % (limit 1.0 %): pointwise in encoder, forward +410 MB, 12 ops more"."""
    if gate.status == "skipped":
        return f"{name(gate)}: {gate.note}"
    grown = growth(gate)
    if gate.interval is not None:
        ends = " to ".join(_amount(end, gate.limit) for end in gate.interval)
        grown += f", 95 % interval {ends}"
    words = f"{name(gate)} {grown} (limit {limit(gate.limit)})"
    causes = "; ".join(_cause(gate, cause) for cause in gate.causes)
    return ": ".join(filter(None, (words, causes))) + (f"; {gate.note}" if gate.note else "")


def name(gate: Gate) -> str:
    """Name the measure of a gate, and its phase."""
    measure_name = _NAMES.get(gate.measure, gate.measure)
    return measure_name if gate.phase is None else f"{measure_name}, {wording.plain(gate.phase, 24)}"


def value(measure: Measure, value: float | None) -> str:
    """Write a measured value in the unit of its measure."""
    return _UNITS.get(measure, units.count)(max(0.0, value) if measure == "gap" and value is not None else value)


def growth(gate: Gate) -> str:
    """Write the growth over the baseline, or that the baseline had nothing."""
    if gate.growth is None:
        return units.UNKNOWN
    return "from nothing" if math.isinf(gate.growth) else _amount(gate.growth, gate.limit, gate.measure == "gap")


def _amount(value: float, limit: Limit, points: bool = True) -> str:
    """Write a growth with its sign; absolute ones are points of the wall or numbers of things."""
    if limit.absolute and not points:
        return "0" if value == 0 else f"{value:+,.0f}"
    words = f"{100 * value:+.1f}"
    if words in ("+0.0", "-0.0"):
        words = f"{100 * value:+.1g}" if abs(value) > ROUNDING else "0.0"
    return f"{words} points" if limit.absolute else f"{words} %"


def limit(limit: Limit) -> str:
    """Write the growth that passes."""
    if limit.absolute and isinstance(limit.value, int):
        return units.count(limit.value)
    percent = f"{100 * limit.value:.10g}"
    return f"{percent} points" if limit.absolute else f"{percent} %"


def _cause(gate: Gate, cause: GrownPlace) -> str:
    amount = f"+{_CAUSE_UNITS.get(gate.measure, units.count)(cause.amount)}"
    if not cause.place:
        return f"{wording.plain(cause.what, 80)} {amount}"
    if cause.place[1] is None:  # a row of the account
        return f"{amount}: {wording.plain(cause.what, 400).rstrip('.')}"
    phase, block, op_class = (wording.plain(name or "", 40) for name in cause.place)
    words = f"{op_class} in {block}, {phase} {amount}"
    if cause.ops:
        words += f", {wording.counted(abs(cause.ops), 'op')}"
        words += " more" if cause.ops > 0 else " fewer"
    return f"{words}, most in {wording.plain(cause.what, 60)}"
