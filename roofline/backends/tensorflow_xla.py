"""TensorFlow with XLA: a tf.function compiled whole, or clusters of its graph."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline.backends import Check, Plan, Recording, Say
from roofline.core.knob import DROPOUT
from roofline.core.step import Step

if TYPE_CHECKING:
    from roofline.backends._executor_record import Framework

REQUIRES = ("tensorflow",)
OPTIONS: Mapping[str, tuple[str, ...]] = {"mode": ("compile", "autocluster"), "dropout": ("off",)}
MODELS = "roofline.models.tensorflow"
KNOBS = (DROPOUT,)


def environment(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread pools, logging and XLA's flags."""
    from roofline.backends import _tensorflow_environment

    found = _tensorflow_environment.variables(threads, device)
    if options.get("mode") == "autocluster" and device == "cpu":
        # TensorFlow leaves CPUs out of clustering unless it is told before it is imported.
        found["TF_XLA_FLAGS"] = f"{os.environ.get('TF_XLA_FLAGS', '')} --tf_xla_cpu_global_jit".strip()
    return found


def profiled_environment(device: str) -> dict[str, str]:
    """What only the profiled run gets: beside a GPU no command buffers, whose kernels name no op."""
    from roofline.backends import _xla_flags

    return _xla_flags.without_command_buffers(device)


def workload_options(options: Mapping[str, str]) -> dict[str, str]:
    """What the models are told."""
    told = {name: value for name, value in options.items() if name != "mode"}
    return {**told, "jit": options.get("mode", "compile")}


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

    return TensorFlow(compiled=step.switches.get("jit", "compile") == "compile")
