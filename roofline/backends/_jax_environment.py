"""The environment of a process that is to import JAX; nothing here imports it."""

from __future__ import annotations

from roofline.backends import _xla_flags


def variables(threads: int | None, device: str) -> dict[str, str]:
    """The size of XLA's thread pools, the platform, and where XLA leaves the programs that it was given."""
    pool = {} if threads is None else {"NPROC": str(threads), "OMP_NUM_THREADS": str(threads)}
    platform = {"JAX_PLATFORMS": "cpu"} if device == "cpu" else {}
    return {**pool, **platform, **_xla_flags.dumping(device)}
