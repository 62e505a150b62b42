"""The verdict of `roofline check` as text, as workflow commands of GitHub, and as a document with stable fields."""

from __future__ import annotations

import math
import re
import textwrap
from typing import Any

from roofline import units
from roofline.core.vocabulary import GROUP_OF
from roofline.regression.check import Result
from roofline.regression.growth import Cause, Gate, Measure
from roofline.regression.limits import ROUNDING, Limit
from roofline.renderers import _words

WIDTH = 100
_FEW = 8  # differences that are named

_UNITS: dict[Measure, Any] = {
    "time": units.seconds,
    "gap": units.percent,
    "memory": units.byte,
    "model FLOPs": units.flop,
    "executed FLOPs": units.flop,
    "bytes": units.byte,
}
#: What a cause is told in where that is not the unit of the measure: the gap is a share, its causes are times.
_CAUSE_UNITS: dict[Measure, Any] = {**_UNITS, "gap": units.seconds}
_NAMES: dict[Measure, str] = {"unknown work": "ops of unknown work", "opaque": "opaque regions"}
_VERDICTS = {"passed": "passed", "failed": "FAILED", "unresolved": "not resolved", "skipped": "not judged"}
_LOOSE = ("failed", "unresolved", "skipped")


def text(result: Result) -> str:
    """The sentence, the table of gates, what grew where, and what else is different."""
    lines = [*textwrap.wrap(_headline(result), WIDTH), "", *_table(result)]
    told = [f"{_VERDICTS[gate.status]}: {sentence(gate)}" for gate in _worst_first(result)]
    if result.differences:
        told.append(f"Different, too: {_differences(result)}.")
    for words in told:
        lines += ["", *textwrap.wrap(words, WIDTH, subsequent_indent="  ", break_on_hyphens=False)]
    return "\n".join(_inert(line) for line in lines) + "\n"


def github(result: Result) -> str:
    """The same below one annotation per gate that failed (error) or is not resolved (warning)."""
    commands = []
    for gate in _worst_first(result):
        level = {"failed": "error", "unresolved": "warning"}.get(gate.status)
        if level:
            title = _property(f"roofline: {_name(gate)}")
            commands.append(f"::{level} title={title}::{_data(sentence(gate))}")
    return "\n".join([*(_older(line) for line in commands), text(result)])


def document(result: Result) -> dict[str, Any]:
    """The JSON of `roofline check` (docs/check.md): seconds, FLOP, bytes; an infinite growth is null."""
    profile = result.current.profile
    return {
        "schema": 1,
        "passed": not result.failed,
        "counts_only": result.counts_only,
        "model": profile.model,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "gates": [_gate(gate) for gate in result.gates],
        "differences": [
            {"name": name, "baseline": before, "current": after} for name, before, after in result.differences
        ],
    }


def sentence(gate: Gate) -> str:
    """One gate in words: "bytes +12.1 % (limit 1.0 %): pointwise in encoder, forward +410 MB, 12 ops more"."""
    if gate.status == "skipped":
        return f"{_name(gate)}: {gate.note}"
    growth = _growth(gate)
    if gate.interval is not None:
        ends = " to ".join(_amount(end, gate.limit) for end in gate.interval)
        growth += f", 95 % interval {ends}"
    words = f"{_name(gate)} {growth} (limit {_limit(gate.limit)})"
    causes = "; ".join(_cause(gate, cause) for cause in gate.causes)
    return ": ".join(filter(None, (words, causes))) + (f"; {gate.note}" if gate.note else "")


def _headline(result: Result) -> str:
    failed, gates = len(result.failed), len(result.gates)
    words = f"{failed} of {gates} gates failed" if failed else f"passed, {gates} gates"
    unjudged = sum(gate.status == "skipped" for gate in result.gates)
    unresolved = sum(gate.status == "unresolved" for gate in result.gates)
    more = [f"{number} {what}" for number, what in ((unresolved, "not resolved"), (unjudged, "not judged")) if number]
    only = " (counts only: times, gap and memory are not looked at)" if result.counts_only else ""
    return f"{_words.subject(result.current)}: {', '.join([words, *more])}{only}."


def _worst_first(result: Result) -> list[Gate]:
    noted = [gate for gate in result.gates if gate.status in _LOOSE or gate.note]
    return sorted(noted, key=lambda gate: (*_LOOSE, "passed").index(gate.status))


def _table(result: Result) -> list[str]:
    rows = [("gate", "baseline", "current", "growth", "limit", "")]
    for gate in result.gates:
        values = [_value(gate.measure, value) for value in (gate.baseline, gate.current)]
        growth = units.UNKNOWN if gate.growth is None else _growth(gate)
        rows.append((_name(gate), *values, growth, _limit(gate.limit), _VERDICTS[gate.status]))
    wide = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = [
        "  ".join(cell.ljust(wide[n]) if n in (0, 5) else cell.rjust(wide[n]) for n, cell in enumerate(row)).rstrip()
        for row in rows
    ]
    return [lines[0], "─" * max(len(line) for line in lines), *lines[1:]]


def _name(gate: Gate) -> str:
    name = _NAMES.get(gate.measure, gate.measure)
    return name if gate.phase is None else f"{name}, {_words.plain(gate.phase, 24)}"


def _value(measure: Measure, value: float | None) -> str:
    return _UNITS.get(measure, units.count)(value)


def _growth(gate: Gate) -> str:
    growth = gate.growth
    if growth is None:
        return units.UNKNOWN
    return "from nothing" if math.isinf(growth) else _amount(growth, gate.limit, gate.measure == "gap")


def _amount(value: float, limit: Limit, points: bool = True) -> str:
    """A growth with its sign; absolute ones are points of the wall or numbers of things."""
    if limit.absolute and not points:
        return "0" if value == 0 else f"{value:+,.0f}"
    words = f"{100 * value:+.1f}"
    if words in ("+0.0", "-0.0"):
        words = f"{100 * value:+.1g}" if abs(value) > ROUNDING else "0.0"
    return f"{words} points" if limit.absolute else f"{words} %"


def _limit(limit: Limit) -> str:
    if limit.absolute and isinstance(limit.value, int):
        return units.count(limit.value)
    percent = f"{100 * limit.value:.10g}"
    return f"{percent} points" if limit.absolute else f"{percent} %"


def _cause(gate: Gate, cause: Cause) -> str:
    amount = f"+{_CAUSE_UNITS.get(gate.measure, units.count)(cause.amount)}"
    if not cause.place:
        return f"{_words.plain(cause.what, 80)} {amount}"
    phase, block, op_class = (_words.plain(name, 40) for name in cause.place)
    words = f"{op_class} in {block}, {phase} {amount}"
    if cause.ops:
        words += f", {units.count(abs(cause.ops))} op{'' if abs(cause.ops) == 1 else 's'}"
        words += " more" if cause.ops > 0 else " fewer"
    return f"{words}, most in {_words.plain(cause.what, 60)}"


def _differences(result: Result) -> str:
    told = [
        f"{_words.plain(name, 40)} {_words.plain(before, 40)} → {_words.plain(after, 40)}"
        for name, before, after in result.differences[:_FEW]
    ]
    more = len(result.differences) - len(told)
    return ", ".join([*told, f"{more} more"] if more else told)


def _gate(gate: Gate) -> dict[str, Any]:
    growth = gate.growth
    return {
        "gate": gate.measure,
        "phase": gate.phase,
        "status": gate.status,
        "baseline": gate.baseline,
        "current": gate.current,
        "growth": None if growth is None or math.isinf(growth) else growth,
        "ci95": list(gate.interval) if gate.interval else None,
        "limit": gate.limit.value,
        "absolute": gate.limit.absolute,
        "causes": [_cause_row(cause) for cause in gate.causes],
        "text": sentence(gate),
    }


def _cause_row(cause: Cause) -> dict[str, Any]:
    phase, block, op_class = cause.place or (None, None, None)
    group = GROUP_OF.get(op_class) if op_class else None  # type: ignore[call-overload]
    row = {"phase": phase, "block": block, "class": op_class, "group": group}
    return {**row, "what": cause.what, "amount": cause.amount, "ops": cause.ops}


# ------------------------------------------------------------------------------------- workflow commands


def _data(words: str) -> str:
    """A message, escaped as GitHub's workflow commands want it."""
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    """A property of a workflow command: what ends it is escaped, too."""
    return _data(words).replace(":", "%3A").replace(",", "%2C")


def _inert(line: str) -> str:
    """A line that a runner does not take for a workflow command, whatever names a profile brings.

    "::" counts at the beginning of a line, "##[" (the older form) anywhere in it.
    """
    return re.sub(r"^(\s*)::", r"\1: :", _older(line))


def _older(line: str) -> str:
    return line.replace("##[", "# #[")
