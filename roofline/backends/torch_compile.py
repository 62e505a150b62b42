"""PyTorch with torch.compile: the model's forward and backward as Inductor generates them."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.backends import Check, Plan, Recording, Say
from roofline.core.step import Step

REQUIRES = ("torch",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"mode": ("default", "reduce-overhead", "max-autotune")}
MODELS = "roofline.models.torch"


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread counts, which OpenMP and MKL read when they are loaded, and Inductor when it generates code."""
    return {} if threads is None else {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def profiled_environment(device: str) -> dict[str, str]:
    """Nothing: plain and profiled steps run in one process."""
    return {}


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """Nothing: the models are those of eager PyTorch."""
    return {}


def devices() -> tuple[str, ...]:
    """What PyTorch can run on here."""
    import torch

    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Compile the model's forward, unless the user did; then T, P and C as for eager PyTorch."""
    from roofline.backends import _torch_compile

    return _torch_compile.record(step, plan, say)


def verify(step: Step) -> list[Check]:
    """Our FLOPs of the same step run eagerly, beside FlopCounterMode's and fvcore's: what compilation starts from."""
    from roofline.backends import _torch_verify

    return _torch_verify.verify(step)
