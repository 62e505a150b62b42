"""What the backends on native PyTorch share: their environment, and where PyTorch can run."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.switch import MALLOC

#: What the models in PyTorch take, whoever runs them; what is not given is as PyTorch and the libraries decide.
MODEL_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "attention": ("sdpa", "eager"),
    "optimizer": ("loop", "foreach", "fused"),
    "dropout": ("off",),
}
#: Variables that change how fast PyTorch is.
VARIABLES = (
    *("OMP_WAIT_POLICY", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE"),
    *MALLOC,
)


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
