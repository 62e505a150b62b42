"""Keras 3 and keras_hub, as the builders in `models/_keras` take them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from types import ModuleType
from typing import Any

import keras
import numpy as np

from roofline.errors import MissingError
from roofline.models._adam import Adam
from roofline.models._keras import prepare
from roofline.models._keras import step as steps

FOLDER = "keras"
KERAS = keras


def user_state_kept() -> AbstractContextManager[None]:
    """Restores, on leaving, what building a step changes in the process (see `_keras.prepare`)."""
    return prepare.user_state_kept(keras)


# Models


def library() -> ModuleType:
    """The keras_hub library. Raises MissingError where it is not installed."""
    try:
        return import_module("keras_hub")
    except ModuleNotFoundError as error:
        if error.name != "keras_hub":
            raise
        raise MissingError(
            "This model is built from the keras_hub library, which is not installed: "
            "run `pip install 'roofline[keras]'`."
        ) from error


def classifier(family: str, backbone: Any, classes: int, dropout: float) -> Any:
    """The published classifier on a backbone, such as BertTextClassifier."""
    kind = getattr(library().models, f"{family}TextClassifier")
    return kind(backbone=backbone, num_classes=classes, preprocessor=None, dropout=dropout, compile=False)


def language_model(family: str, backbone: Any, generates: bool = False) -> Any:
    """The published language model on a backbone, such as GPT2CausalLM, which has its `generate` in any case."""
    return getattr(library().models, f"{family}CausalLM")(backbone=backbone, preprocessor=None, compile=False)


def attention(dropout: float) -> str:
    """How Keras's MultiHeadAttention computes, which the dropout rate that it was made with decides, in inference too.

    With a rate above 0 it writes attention out, softmax(QK^T/sqrt(d) + mask)V by two einsums; else it calls
    `keras.ops.dot_product_attention`, which PyTorch and JAX answer with a function of their own.
    """
    if dropout > 0:
        return "written out"
    return {"torch": "sdpa", "jax": "dot_product_attention"}.get(keras.backend.backend(), "written out")


# Steps


def samples(model: Any, sampler: Any) -> None:
    """Gives a compiled language model its sampler."""
    model.sampler = sampler


def generated(model: Any, inputs: Any) -> Any:
    """One call of the model's `generate`, which no token ends early."""
    return model.generate(inputs, stop_token_ids=None)


class AdamW(keras.optimizers.AdamW):
    """Keras's AdamW, with embedding gradients added up by token before they are squared.

    For TensorFlow, where the gradient of an embedding is a list of rows, one for each token of the batch. Keras
    squares the rows of a token that occurs several times one by one, so that its second moment, and its update, is
    another than on the other backends, and makes the rows a table only after that, twice. Here they are one at once.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable."""
        import tensorflow

        super().update_step(tensorflow.convert_to_tensor(gradient), variable, learning_rate)


def optimizer(adam: Adam) -> Any:
    """Adam or AdamW as `_keras.step` makes them, but for embeddings in TensorFlow."""
    # On PyTorch, Keras puts another class, which updates all parameters at once, in the place of its own only.
    dense = adam.weight_decay and keras.backend.backend() == "tensorflow"
    return steps.adam(AdamW if dense else getattr(keras.optimizers, adam.name), adam)


def compiled(model: keras.Model, optimizer: Any, loss: Any, jit: bool | None) -> None:
    """Compiles the model; jit None: as Keras decides.

    No metrics: the published tasks of keras_hub would add an accuracy, which native training loops do not compute.
    """
    how = "auto" if jit is None else jit
    model.compile(optimizer=optimizer, loss=loss, metrics=None, weighted_metrics=None, jit_compile=how)


def tensor(value: np.ndarray, dtype: str | None) -> Any:
    """The array as a tensor of the backend on the device; dtype None: as it is."""
    return keras.ops.convert_to_tensor(value, dtype=dtype)


def switches() -> dict[str, str]:
    """The backend."""
    return {"keras backend": keras.backend.backend()}


def optimizer_switches(optimizer: Any) -> dict[str, str]:
    """The compiled optimizer, its arguments and how it runs."""
    return {
        **steps.argument_switches(optimizer),
        **steps.scaler_switch(optimizer),
        # On PyTorch, Keras updates all parameters with list ops; elsewhere one by one.
        "optimizer foreach": str(keras.backend.backend() == "torch"),
    }
