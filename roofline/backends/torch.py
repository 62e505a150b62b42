"""PyTorch, eager: the step as the user runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from roofline.backends import Check, Plan, Recording, Say
from roofline.core.step import Step
from roofline.core.switch import ATTENTION, COMPILED_AWAY, DROPOUT, OPTIMIZER, Knob
from roofline.pytorch.recording.process import MODEL_OPTIONS, VARIABLES, devices, environment, profiled_environment

__all__ = [
    "KNOBS",
    "MODELS",
    "OPTIONS",
    "REQUIRES",
    "devices",
    "environment",
    "process_environment",
    "profiled_environment",
    "record",
    "switches",
    "verify",
    "versions",
    "workload_options",
]

REQUIRES = ("torch",)
OPTIONS: Mapping[str, tuple[str, ...]] = MODEL_OPTIONS
MODELS = "roofline.models.torch"
KNOBS = (
    ATTENTION,
    Knob(
        name="torch.compile",
        rules=COMPILED_AWAY,
        assumed="off",
        turns={"off": "on"},
        backend="torch-compile",
        moves=("backend", "switch torch.compile"),
    ),
    OPTIMIZER,
    DROPOUT,
)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    return dict(options)


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

    found = {
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "cudnn.benchmark": str(torch.backends.cudnn.benchmark),
        "oneDNN": str(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
    }
    backends = torch.backends
    settings = {
        "matmul (cuBLAS)": (backends.cuda, "matmul"),
        "convolution (cuDNN)": (backends.cudnn, "conv"),
        "rnn (cuDNN)": (backends.cudnn, "rnn"),
        "matmul (oneDNN)": (backends.mkldnn, "matmul"),
        "convolution (oneDNN)": (backends.mkldnn, "conv"),
        "rnn (oneDNN)": (backends.mkldnn, "rnn"),
    }
    for name, (library, op) in settings.items():
        precision = getattr(getattr(library, op, None), "fp32_precision", None)
        if precision is not None:
            found[f"float32 {name}"] = str(precision)
    return found


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


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C); they are never mixed."""
    from roofline.pytorch.recording import record as torch_record

    return torch_record.record(step, plan, say)


def verify(step: Step) -> list[Check]:
    """Our FLOPs beside FlopCounterMode's and fvcore's."""
    from roofline.pytorch.recording import verify as torch_verify

    return torch_verify.verify(step)
