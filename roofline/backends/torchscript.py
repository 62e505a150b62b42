"""PyTorch with TorchScript: the step's model traced (for inference frozen too), or as the user scripted it."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.core.step import Step
from roofline.core.switch import ATTENTION, DROPOUT, OPTIMIZER
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
OPTIONS: Mapping[str, tuple[str, ...]] = {"freeze": ("on", "off"), **MODEL_OPTIONS}
MODELS = "roofline.models.torch"
SWITCHES = (ATTENTION, OPTIMIZER, DROPOUT)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models, which are traced as they are in eager PyTorch, are told."""
    return {name: value for name, value in options.items() if name in MODEL_OPTIONS}


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C) of the step with its model in TorchScript.

    Raises InputError for a step without a model, for a model that cannot be traced, and for `freeze=on` where it
    cannot be.
    """
    from roofline.pytorch.torchscript import record as torchscript

    return torchscript.record(step, plan, say)


def verify(step: Step) -> list[Check]:
    """The FLOPs that the traced step executes beside FlopCounterMode's, and fvcore's of the model before tracing."""
    from roofline.pytorch.torchscript import record as torchscript

    return torchscript.verify(step)
