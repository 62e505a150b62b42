"""TensorFlow with XLA: a tf.function compiled whole, or clusters of its graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.core.step import Step
from roofline.core.switch import DROPOUT
from roofline.recording.recording import Check, Plan, Recording, Say

if TYPE_CHECKING:
    from roofline.recording.executor import Framework

REQUIRES = ("tensorflow",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"mode": ("compile", "autocluster"), "dropout": ("off",)}
MODELS = "roofline.models.tensorflow"
SWITCHES = (DROPOUT,)


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread pools, logging and XLA's flags."""
    from roofline.tensorflow import environment as tensorflow_environment

    found = tensorflow_environment.variables(threads, device)
    if options.get("mode") == "autocluster" and device == "cpu":
        # TensorFlow leaves CPUs out of clustering unless it is told before it is imported.
        found["TF_XLA_FLAGS"] = f"{os.environ.get('TF_XLA_FLAGS', '')} --tf_xla_cpu_global_jit".strip()
    return found


def profiled_environment(device: str) -> dict[str, str]:
    """What only the profiled run gets: beside a GPU no command buffers, whose kernels name no op."""
    from roofline.xla import flags

    return flags.without_command_buffers(device)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    told = {name: value for name, value in options.items() if name != "mode"}
    return {**told, "jit": options.get("mode", "compile")}


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

    return TensorFlow(compiled=step.switches.get("jit", "compile") == "compile")
