"""What the backends on native PyTorch share: their environment, and where PyTorch can run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

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


def versions() -> dict[str, str]:
    """Versions of what decides how fast a step is."""
    import torch

    found = {"torch": str(torch.__version__)}
    for name in ("transformers", "numpy", "triton"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        cudnn = torch.backends.cudnn.version()
        found["cudnn"] = str(cudnn)
    return found


def switches() -> dict[str, str]:
    """The process-wide switches that change what runs."""
    import torch

    from roofline.models._float32 import torch as float32

    return {
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "cudnn.benchmark": str(torch.backends.cudnn.benchmark),
        "oneDNN": str(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        **float32.switches(),
    }


def process_environment() -> dict[str, str]:
    """Threads and affinity of this process, and the variables that steer them."""
    import torch

    found = {
        "threads": str(torch.get_num_threads()),
        "interop threads": str(torch.get_num_interop_threads()),
        "cpus": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
    }
    for name in VARIABLES:
        if name in os.environ:
            found[name] = os.environ[name]
    return found
