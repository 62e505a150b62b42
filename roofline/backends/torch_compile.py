"""PyTorch with torch.compile: the model's forward and backward as Inductor generates them."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.backends import Check, Plan, Recording, Say
from roofline.backends._torch_process import devices, environment, profiled_environment
from roofline.core.step import Step

__all__ = [
    "MODELS",
    "OPTIONS",
    "REQUIRES",
    "devices",
    "environment",
    "profiled_environment",
    "record",
    "verify",
    "workload_options",
]

REQUIRES = ("torch",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"mode": ("default", "reduce-overhead", "max-autotune")}
MODELS = "roofline.models.torch"


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """Nothing: the models are those of eager PyTorch."""
    return {}


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Compile the model's forward, unless the user did; then T, P and C as for eager PyTorch."""
    from roofline.backends import _torch_compile

    return _torch_compile.record(step, plan, say)


def verify(step: Step) -> list[Check]:
    """Our FLOPs of the same step run eagerly, beside FlopCounterMode's and fvcore's: what compilation starts from."""
    from roofline.backends import _torch_verify

    return _torch_verify.verify(step)
