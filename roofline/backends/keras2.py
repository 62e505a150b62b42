"""Keras 2 (tf_keras and KerasNLP 0.8.2); jit off unless given, as Keras 2 decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.core.step import Step
from roofline.core.switch import DROPOUT, JIT
from roofline.recording.recording import Check, Plan, Recording, Say

if TYPE_CHECKING:
    from roofline.recording.executor import Framework

REQUIRES = ("tensorflow", "tf_keras")
OPTIONS: Mapping[str, tuple[str, ...]] = {"jit": ("on", "off"), "dropout": ("off",)}
MODELS = "roofline.models.keras2"
SWITCHES = (JIT, DROPOUT)


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Keras 2 under its own name, and what TensorFlow reads."""
    from roofline.tensorflow import environment as tensorflow_environment

    return {"TF_USE_LEGACY_KERAS": "1", **tensorflow_environment.variables(threads, device)}


def profiled_environment(device: str) -> dict[str, str]:
    """What only the profiled run gets: beside a GPU no command buffers, whose kernels name no op."""
    from roofline.xla import flags

    return flags.without_command_buffers(device)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    return dict(options)


def devices() -> tuple[str, ...]:
    """What TensorFlow can run on here."""
    from roofline.tensorflow import framework

    return framework.devices()


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count what they ran (C)."""
    from roofline.recording import executor

    return executor.record(step, plan, say, _framework(step))


def verify(step: Step) -> list[Check]:
    """Our FLOPs beside those of an independent reference."""
    from roofline.xla import verify as executor_verify

    return executor_verify.verify(step, _framework(step))


def _framework(step: Step) -> Framework:
    from roofline.keras import optimizers
    from roofline.tensorflow.framework import TensorFlow

    compiled = step.switches.get("jit") == "on"
    return TensorFlow(compiled, optimizers=optimizers.SCOPES, libraries=("tf_keras", "keras-nlp"))
