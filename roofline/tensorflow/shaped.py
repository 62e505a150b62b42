"""Call a function of the user's with TensorFlow's tensors, made by shape and type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from roofline.core.step import Step
from roofline.recording.inputs import Input, arrays, described


def step(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
    """Make the step that calls a function."""
    given = [tf.cast(array, asked.dtype) for array, asked in zip(arrays(inputs, None), inputs, strict=True)]
    return Step(run=lambda: called(*given), switches={"inputs": described(inputs)})
