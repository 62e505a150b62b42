"""PyTorch, eager: the step as the user runs it."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.step import Step
from roofline.core.switch import ATTENTION, COMPILED_AWAY, DROPOUT, OPTIMIZER, Switch
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
OPTIONS: Mapping[str, tuple[str, ...]] = MODEL_OPTIONS
MODELS = "roofline.models.torch"
SWITCHES = (
    ATTENTION,
    Switch(
        name="torch.compile",
        kind=COMPILED_AWAY,
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


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C); they are never mixed."""
    from roofline.pytorch.recording import record as torch_record

    return torch_record.record(step, plan, say)


def verify(step: Step) -> list[Check]:
    """Our FLOPs beside FlopCounterMode's and fvcore's."""
    from roofline.pytorch.recording import verify as torch_verify

    return torch_verify.verify(step)
