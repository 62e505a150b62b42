"""Whether a step fits into the memory of the other device."""

from __future__ import annotations

from roofline.projection.carry import WhatIf


def fits(found: WhatIf) -> bool | None:
    """Whether the peak memory of here fits there; None where that is not known: a CPU's peak counts the libraries."""
    peak, memory = found.here.profile.memory.peak, found.there.memory
    return None if peak is None or memory is None or found.here.device.kind == "cpu" else peak <= memory
