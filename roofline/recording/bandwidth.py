"""Memory bandwidth right before and after the steps: on a CPU it is shared with whoever else is there."""

from __future__ import annotations

from roofline.core.device import Ceiling
from roofline.recording.process import importing
from roofline.recording.recording import Plan


def bandwidth(plan: Plan, threads: int | None) -> dict[str, Ceiling]:
    """The ceilings of memory at this moment, where they are wanted and there is something to measure them with.

    threads: None for those that torch has in this process.
    """
    if plan.device != "cpu" or plan.plain_only:
        return {}
    try:
        with importing():
            import torch

        from roofline.devices import probes_cpu

        before = torch.get_num_threads()
        if threads is None:
            return probes_cpu.beside(before)
        torch.set_num_threads(threads)
        try:
            return probes_cpu.beside(threads)
        finally:
            torch.set_num_threads(before)
    except (ImportError, RuntimeError, MemoryError):
        return {}  # no torch, or no room for the arrays: the calibrated ceilings stand
