"""The environment of a process that is to import JAX; nothing here imports it."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.xla import flags


def variables(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """The size of XLA's thread pools, the platform, and XLA's flags: where it leaves programs, command buffers, and
    where it keeps which kernels are the fastest."""
    pool = {} if threads is None else {"NPROC": str(threads), "OMP_NUM_THREADS": str(threads)}
    platform = {"JAX_PLATFORMS": "cpu"} if device == "cpu" else {}
    asked = flags.asked(device, options.get("command_buffers"))
    return {**pool, **platform, **flags.with_autotuning(asked, device)}
