"""The environment of a process that is to import JAX; nothing here imports it."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.xla import flags


def variables(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """The size of XLA's thread pools, the platform, and XLA's flags: where it leaves programs, and command buffers."""
    pool = {} if threads is None else {"NPROC": str(threads), "OMP_NUM_THREADS": str(threads)}
    platform = {"JAX_PLATFORMS": "cpu"} if device == "cpu" else {}
    return {**pool, **platform, **flags.asked(device, options.get("command_buffers"))}
