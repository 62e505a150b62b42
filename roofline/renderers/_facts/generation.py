"""Prefill and decode in words: what the prompt takes, what a token takes, and what it must read."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.generation import generation
from roofline.renderers._words import gap_name

#: From this share of the step on, the part of the gap that belongs to no phase is told. By choice.
_SOME = 0.01


def told(analysis: Analysis) -> str:
    """What is known of the phases of a step that generates; "" for any other."""
    found = generation(analysis)
    if found is None:
        return ""
    each = found.passes or 1
    decode = f"decode {units.seconds(found.decode)}"
    if found.passes:
        decode += f", {units.seconds(found.decode / each)} for each of {found.passes} passes"
    parts = [f"prefill {units.seconds(found.prefill)}", decode]
    if found.gap >= _SOME * analysis.wall:
        parts.append(f"{units.seconds(found.gap)} of {gap_name(analysis)} in neither")
    least = [f"floor {units.seconds(found.floor / each)}"] if found.floor else []
    if found.passes and found.weights is not None:
        size = units.byte(analysis.profile.memory.parameters)
        least.append(f"reading all parameters once ({size}) takes {units.seconds(found.weights)} or more")
    if found.passes and found.attention is not None:
        least.append(f"its attention core reads {units.byte(found.attention / each)}")
    if least:
        parts.append(f"{'a pass' if found.passes else 'decode'}: {', '.join(least)}")
    return "; ".join(parts)
