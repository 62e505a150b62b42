"""TensorFlow, graph mode: a tf.function as grappler optimises it, without XLA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.backends import Check, Plan, Recording, Say
from roofline.core.knob import COMPILED_AWAY, DROPOUT, Knob
from roofline.core.step import Step

if TYPE_CHECKING:
    from roofline.backends._executor_record import Framework

REQUIRES = ("tensorflow",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"dropout": ("off",)}
MODELS = "roofline.models.tensorflow"
KNOBS = (
    Knob(
        name="jit_compile",
        rules=COMPILED_AWAY,
        reads="jit",
        turns={"off": "on"},
        backend="tensorflow-xla",
        moves=("backend", "switch jit"),
    ),
    DROPOUT,
)


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread pools, logging and XLA's flags."""
    from roofline.backends import _tensorflow_environment

    return _tensorflow_environment.variables(threads, device)


def profiled_environment(device: str) -> dict[str, str]:
    """What only the profiled run gets: beside a GPU no command buffers, whose kernels name no op."""
    from roofline.backends import _xla_flags

    return _xla_flags.without_command_buffers(device)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    return {**options, "jit": "off"}


def devices() -> tuple[str, ...]:
    """What TensorFlow can run on here."""
    from roofline.backends import _tensorflow_framework

    return _tensorflow_framework.devices()


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count what they ran (C)."""
    from roofline.backends import _executor_record

    return _executor_record.record(step, plan, say, _framework(step))


def verify(step: Step) -> list[Check]:
    """Our FLOPs beside those of an independent reference."""
    from roofline.backends import _executor_verify

    return _executor_verify.verify(step, _framework(step))


def _framework(step: Step) -> Framework:
    from roofline.backends._tensorflow_framework import TensorFlow

    return TensorFlow(compiled=False)
