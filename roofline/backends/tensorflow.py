"""TensorFlow, graph mode: a tf.function as grappler optimises it, without XLA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.core.step import Step
from roofline.core.switch import COMPILED_AWAY, DROPOUT, Switch
from roofline.recording.recording import Check, Plan, Recording, Say

if TYPE_CHECKING:
    from roofline.recording.executor import Framework

REQUIRES = ("tensorflow",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"dropout": ("off",)}
MODELS = "roofline.models.tensorflow"
SWITCHES = (
    Switch(
        name="jit_compile",
        kind=COMPILED_AWAY,
        reads="jit",
        turns={"off": "on"},
        backend="tensorflow-xla",
        moves=("backend", "switch jit"),
    ),
    DROPOUT,
)


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread pools, logging and XLA's flags."""
    from roofline.tensorflow import environment as tensorflow_environment

    return tensorflow_environment.variables(threads, device)


def profiled_environment(device: str) -> dict[str, str]:
    """What only the profiled run gets: beside a GPU no command buffers, whose kernels name no op."""
    from roofline.xla import flags

    return flags.without_command_buffers(device)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    return {**options, "jit": "off"}


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
    from roofline.tensorflow.framework import TensorFlow

    return TensorFlow(compiled=False)
