"""Describe the current GPU from torch and its driver."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.core.device import Device
from roofline.devices import nvidia
from roofline.errors import MissingError


def describe() -> Device:
    """Describe the current GPU without ceilings; `conditions` hold its driver, power cap and highest clock.

    Raises MissingError where torch sees none.
    """
    import torch

    if not torch.cuda.is_available():
        reason = nvidia.unavailable() or "The installed torch is built without CUDA."
        raise MissingError(f"torch sees no GPU: {reason} Use `--device cpu`.")
    properties = torch.cuda.get_device_properties(0)
    conditions = {"cuda": str(torch.version.cuda or torch.version.hip)}
    state = nvidia.snapshot(nvidia.visible_index())
    if state is not None and state.name == properties.name:
        if state.driver:
            conditions["driver"] = state.driver
        if state.power_cap is not None:
            conditions["power cap"] = f"{state.power_cap:.0f} W"
        if state.sm_clock_max is not None:
            conditions["highest clock"] = f"{state.sm_clock_max / 1e6:.0f} MHz"
    return Device(
        name=properties.name,
        kind="cuda" if torch.version.hip is None else "rocm",
        ceilings={},
        memory=float(properties.total_memory),
        conditions=conditions,
    )


def l2_size() -> int:
    """Read the size of the cache [byte]; 0 where this build of torch does not tell."""
    import torch

    return int(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0))


@dataclass(frozen=True, slots=True)
class Grid:
    """Hold a launch whose blocks all run at once: none waits for another to end."""

    blocks: int
    threads: int

    @property
    def total(self) -> int:
        """Threads of all blocks."""
        return self.blocks * self.threads


def grid(threads_per_processor: int | None = None, threads: int = 256) -> Grid:
    """Fill every multiprocessor with blocks of `threads`, to threads_per_processor; None: as many as it can hold."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    per_processor = threads_per_processor or int(properties.max_threads_per_multi_processor)
    return Grid(int(properties.multi_processor_count) * (per_processor // threads), threads)
