"""Measure memory bandwidth right before and after the steps: on a CPU other programs share it."""

from __future__ import annotations

from roofline.core.device import Ceiling
from roofline.recording.recording import Plan


def bandwidth(plan: Plan, threads: int | None) -> dict[str, Ceiling]:
    """Measure the ceilings of a CPU's memory now; empty for a GPU and in a run of plain steps only.

    threads: see `probes_cpu.quick_bandwidth`.
    """
    if plan.device != "cpu" or plan.plain_only:
        return {}
    from roofline.devices import probes_cpu

    return probes_cpu.quick_bandwidth(threads)
