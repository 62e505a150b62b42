"""Memory bandwidth right before and after the steps: on a CPU it is shared with whoever else is there."""

from __future__ import annotations

from roofline.core.device import Ceiling
from roofline.recording.recording import Plan


def bandwidth(plan: Plan, threads: int | None) -> dict[str, Ceiling]:
    """The ceilings of memory at this moment, where they are wanted; threads: see `probes_cpu.quick_bandwidth`."""
    if plan.device != "cpu" or plan.plain_only:
        return {}
    from roofline.devices import probes_cpu

    return probes_cpu.quick_bandwidth(threads)
