"""Check whether a step fits into the memory of the other device."""

from __future__ import annotations

from roofline.projection.project import WhatIf


def fits(whatif: WhatIf) -> bool | None:
    """Return whether the peak memory fits there; None where that is not known: a CPU's peak counts the libraries."""
    peak, memory = whatif.here.profile.memory.peak, whatif.there.memory
    return None if peak is None or memory is None or whatif.here.device.kind == "cpu" else peak <= memory
