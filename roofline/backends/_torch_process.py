"""What the backends on native PyTorch share: their environment, and where PyTorch can run."""

from __future__ import annotations

from collections.abc import Mapping


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread counts, which OpenMP and MKL read when they are loaded."""
    return {} if threads is None else {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def profiled_environment(device: str) -> dict[str, str]:
    """Nothing: plain and profiled steps run in one process."""
    return {}


def devices() -> tuple[str, ...]:
    """What PyTorch can run on here."""
    import torch

    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
