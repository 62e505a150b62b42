"""Describe what the host does while no op runs: so many ops at so much each, input, sleep, other Python."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.dispatch_cost import dispatched
from roofline.analysis.gap_causes import COMPILED, seconds_of
from roofline.analysis.gap_parts import COMPILING
from roofline.analysis.host_cost import HostCost, host_cost
from roofline.content.wording import conjunction, counted, gap_part
from roofline.core.executor import ASLEEP, COMPILED_CODE, PROGRAMS, compiles

#: From this share of the gap on a part of it is told; and from this share of the step on, the gap in the first
#: sentence. By choice.
_SOME = 0.1
#: A part of the gap from this share on is most of it. By choice.
_MOST = 0.5


def gap_time(analysis: Analysis) -> str:
    """Write the gap; "not known" where scaled ops fill the step."""
    return "not known" if analysis.gap_told is None else units.seconds(analysis.gap_told)


def gap_in_words(analysis: Analysis, most: int = 2) -> str:
    """Give the gap, its largest parts, `most` of them, and what is left from half a percent on, with their times:
    "643 ms: 345 ms host dispatch, 285 ms other host code, the rest 12.8 ms".
    """
    gap = gap_time(analysis)
    parts = _largest_parts(analysis, most)
    words = [f"{units.seconds(seconds)} {gap_part(name)}" for name, seconds in parts]
    if parts and units.seconds(parts[0][1]) == gap:
        return f"{gap}, {gap_part(parts[0][0])}"
    rest = analysis.gap - sum(seconds for _, seconds in parts)
    words += [f"the rest {units.seconds(rest)}"] if parts and rest > 0.005 * analysis.gap else []
    return f"{gap}: {', '.join(words)}" if words else gap


def _largest_parts(analysis: Analysis, most: int) -> list[tuple[str, float]]:
    """Return the names and times [s] of the largest parts of the gap, none where it has none or is not known."""
    parts = sorted((analysis.gap_causes or {}).items(), key=lambda part: -part[1])
    return [(name, seconds) for name, seconds in parts[:most] if seconds > 0] if analysis.gap_told else []


def describe_host(analysis: Analysis) -> str:
    """Describe the parts of the gap that are not little, the dispatch of ops always; "" where the gap is not known.

    Where the parts are not known, ops can take no more than all of the gap.
    """
    cost = host_cost(analysis)
    if cost is None:
        return _bound(analysis)
    parts = [f"{units.seconds(cost.dispatch)} for {cost.words} (dispatch and Python around them)"]
    for seconds, activity in _others(cost):
        if seconds >= _SOME * cost.gap:
            parts.append(f"{units.seconds(seconds)} {activity}")
    empty_op, in_layers = units.seconds(cost.op_alone), units.seconds(cost.in_layers)
    return f"{conjunction(parts)}; dispatch of an empty op: {empty_op} by itself, {in_layers} inside layers (Python)"


def _bound(analysis: Analysis) -> str:
    """Bound the host time of ops, or of the programs that a compiler made of the step.

    It is the gap without the time in which the thread certainly was on no core: then it dispatched nothing.
    """
    if analysis.gap <= 0 or analysis.has_queue:
        return ""
    dispatches, programs = dispatched(analysis.profile), round(analysis.profile.conditions.get(PROGRAMS, 0.0))
    if dispatches is not None:
        units_dispatched, number = dispatches.words, dispatches.all
    elif programs > 1 and compiles(analysis.profile) and analysis.gap >= _SOME * analysis.wall:
        units_dispatched, number = counted(programs, "compiled program"), programs
    else:
        return ""
    away = min(analysis.profile.conditions.get(ASLEEP, 0.0), analysis.gap)
    if away < _SOME * analysis.gap:
        away = 0.0
    sentence = f"{units_dispatched} per step, at most {units.seconds((analysis.gap - away) / number)} of host time each"
    if not away:
        return sentence
    return f"{sentence}; its thread was on no core for {units.seconds(away)} of a plain step: asleep or waiting"


def most(analysis: Analysis) -> str:
    """Name the part that is most of a gap which is much of the step; "" where none is, or it is not known."""
    if (
        COMPILED_CODE in analysis.profile.flags
        and seconds_of(COMPILED, analysis.gap_causes) >= _MOST * analysis.gap > 0
    ):
        return "most of it in compiled code, whose kernels are not seen"
    if seconds_of(COMPILING, analysis.gap_causes) >= _MOST * analysis.gap > _SOME * analysis.wall:
        return f"most of it {COMPILING}"
    cost = host_cost(analysis)
    if cost is None or cost.gap < _SOME * analysis.wall:
        return ""
    if cost.dispatch >= _MOST * cost.gap:
        return f"most of it for {cost.words}"
    return next((f"most of it {activity}" for seconds, activity in _others(cost) if seconds >= _MOST * cost.gap), "")


def _others(cost: HostCost) -> list[tuple[float, str]]:
    python = "in Python besides" if cost.asleep is not None else "in Python besides, asleep or waiting"
    return [(cost.input, "waiting for input"), (cost.asleep or 0.0, "asleep or waiting"), (cost.other_python, python)]
