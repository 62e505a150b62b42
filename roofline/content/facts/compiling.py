"""Say how much of the plain steps is compiling or tracing, and how to do it once for all steps."""

from __future__ import annotations

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.compile_time import compile_share
from roofline.core.executor import COMPILING
from roofline.core.framework import framework

_CURES = {
    "jax": "define jitted functions once, outside of the step, and pass numbers that change as arrays",
    "tensorflow": "make each tf.function once, outside of the step, and pass numbers that change as tensors",
    "torch": "call torch.compile once, outside of the step, with dynamic=True where shapes change",
}
#: What is known of it; of frameworks that are not here all.
_KNOWN = {"tensorflow": "tracing, and compiling by XLA, without what Grappler takes between"}


def describe_compiling(analysis: Analysis) -> str:
    """Say how much of a step compiles, and the cure: "412 of 440 ms of a step, on average: ..."; "" where little."""
    if compile_share(analysis.profile) is None:
        return ""
    ran, seconds = framework(analysis.profile), analysis.profile.conditions[COMPILING]
    mean = units.seconds(float(np.mean(analysis.profile.wall.steps)))
    number, _, unit = units.seconds(seconds).partition(" ")
    part = number if mean.endswith(f" {unit}") else f"{number} {unit}"
    kind = _KNOWN.get(ran, "compilation, tracing included")
    cure = _CURES.get(ran)
    return f"{part} of {mean} of a step, on average, is {kind}{f': {cure}' if cure else ''}"
