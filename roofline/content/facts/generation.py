"""Describe prefill and decode: the time of the prompt, the time of a token, and the bytes that it must read."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.generation import generation
from roofline.content.wording import gap_name

#: From this share of the step on, the part of the gap that belongs to no phase is told. By choice.
_SOME = 0.01


def describe_generation(analysis: Analysis) -> str:
    """Describe the phases of a step that generates; "" for any other."""
    phases = generation(analysis)
    if phases is None:
        return ""
    passes = phases.passes or 1
    decode = f"decode {units.seconds(phases.decode)}"
    if passes > 1:
        decode += f", {units.seconds(phases.decode / passes)} for each of {phases.passes} passes"
    parts = [f"prefill {units.seconds(phases.prefill)}", decode] if phases.prefill else [decode]
    if phases.gap >= _SOME * analysis.wall:
        parts.append(f"{units.seconds(phases.gap)} of {gap_name(analysis)} in neither")
    bounds = [f"minimum {units.seconds(phases.floor / passes)}"] if phases.floor else []
    if phases.passes and phases.weights is not None:
        size = units.byte(analysis.profile.memory.parameters)
        bounds.append(f"reading all parameters once ({size}) takes {units.seconds(phases.weights)} or more")
    if phases.passes and phases.attention is not None:
        bounds.append(f"its attention core reads {units.byte(phases.attention / passes)}")
    if bounds:
        parts.append(f"{'a pass' if phases.passes else 'decode'}: {', '.join(bounds)}")
    return "; ".join(parts)
