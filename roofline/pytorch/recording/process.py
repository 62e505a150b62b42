"""Holds what backends on PyTorch share: options of models, their environment, what is recorded of their process."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.switch import MALLOC
from roofline.recording import process

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


def of_models(options: Mapping[str, str]) -> dict[str, str]:
    """The options that the models take, without those of what compiles them."""
    return {name: value for name, value in options.items() if name in MODEL_OPTIONS}


def versions(libraries: tuple[str, ...] = ()) -> dict[str, str]:
    """Versions of what decides how fast a step is; libraries: further distributions."""
    import torch

    torch_versions = {"torch": str(torch.__version__)}
    torch_versions |= process.versions((*libraries, "transformers", "diffusers", "numpy", "triton"))
    if torch.version.cuda:
        torch_versions["cuda"] = torch.version.cuda
        cudnn = torch.backends.cudnn.version()
        torch_versions["cudnn"] = str(cudnn)
    return torch_versions


def switches() -> dict[str, str]:
    """The process-wide switches that change what runs."""
    import torch

    from roofline.models.float32 import torch as float32

    return {
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "cudnn.benchmark": str(torch.backends.cudnn.benchmark),
        "oneDNN": str(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        **float32.switches(),
    }


def process_environment() -> dict[str, str]:
    """Threads and affinity of this process, and the variables that steer them."""
    import torch

    return {
        "threads": str(torch.get_num_threads()),
        "interop threads": str(torch.get_num_interop_threads()),
        "cpus": process.cores(),
        **process.variables(VARIABLES),
    }
