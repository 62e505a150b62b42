"""Call a Keras model of the user's with inputs made by shape and type, as inference does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from roofline.core.step import Step
from roofline.errors import InputError
from roofline.recording.inputs import Input, arrays, described


def caller(library: str) -> Callable[[Callable[..., object], Sequence[Input], str], Step]:
    """Return what makes the step of a model of `library`, "keras" or "tf_keras"."""

    def step(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
        return _step(import_module(library), called, inputs)

    return step


def _step(keras: Any, model: Any, inputs: Sequence[Input]) -> Step:
    """Make the step `model.predict_on_batch(inputs)`. Raises InputError for other objects, and for bfloat16."""
    if not isinstance(model, keras.Model):
        raise InputError(
            f"{type(model).__name__} is no model of {keras.__name__}, whose inputs --shapes can make: "
            "write a function that returns a callable, or give the backend of what it runs on."
        )
    if any(asked.dtype == "bfloat16" for asked in inputs):
        raise InputError("A Keras model is given numpy's arrays, which have no bfloat16: give float32 or float16.")
    tables = [layer.input_dim for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)]
    given = arrays(inputs, min(tables, default=None))
    x = given[0] if len(given) == 1 else given

    def forward() -> object:
        return model.predict_on_batch(x)

    weights = model.trainable_weights if model.built else []
    return Step(
        run=forward,
        forward=forward,
        model=model,
        parameters=model.count_params() if model.built else None,
        trainable=sum(math.prod(weight.shape) for weight in weights) if model.built else None,
        switches={"inputs": described(inputs)},
    )
