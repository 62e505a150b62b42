"""PyTorch with torch.compile: the model's forward and backward as Inductor generates them."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.step import Step
from roofline.core.switch import ATTENTION, DROPOUT, LAUNCHED_AWAY, OPTIMIZER, Switch
from roofline.pytorch.recording.process import MODEL_OPTIONS, devices, environment, profiled_environment
from roofline.recording.recording import Check, Plan, Recording, Say

__all__ = [
    "MODELS",
    "OPTIONS",
    "REQUIRES",
    "SWITCHES",
    "devices",
    "environment",
    "profiled_environment",
    "record",
    "verify",
    "workload_options",
]

REQUIRES = ("torch",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"mode": ("default", "reduce-overhead", "max-autotune"), **MODEL_OPTIONS}
MODELS = "roofline.models.torch"
SWITCHES = (
    ATTENTION,
    Switch(
        name="torch.compile",
        kind=LAUNCHED_AWAY,
        reads="torch.compile",
        turns={"mode=default": "reduce-overhead"},
        option="mode",
        words={"reduce-overhead": "mode=reduce-overhead (CUDA graphs)"},
        moves=("option mode", "switch torch.compile"),
        devices=("cuda",),
    ),
    OPTIMIZER,
    DROPOUT,
)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models, which are those of eager PyTorch, are told."""
    return {name: value for name, value in options.items() if name in MODEL_OPTIONS}


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Compile the model's forward, unless the user did; then T, P and C as for eager PyTorch."""
    from roofline.pytorch.inductor import record as torch_compile

    return torch_compile.record(step, plan, say)


def verify(step: Step) -> list[Check]:
    """Our FLOPs of the same step run eagerly, beside FlopCounterMode's and fvcore's: what compilation starts from."""
    from roofline.pytorch.recording import verify as torch_verify

    return torch_verify.verify(step)
