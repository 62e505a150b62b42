"""Keras 2 (tf_keras) and KerasNLP 0.8.2, as the builders in `models/_keras` take them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from roofline.errors import InputError, MissingError
from roofline.models._adam import Adam
from roofline.models._keras import prepare
from roofline.models._keras import step as steps

FOLDER = "keras2"
KERAS = keras


def user_state_kept() -> AbstractContextManager[None]:
    """Restores, on leaving, what building a step changes in the process (see `_keras.prepare`)."""
    return prepare.user_state_kept(keras)


# Models


def library() -> ModuleType:
    """The KerasNLP library on Keras 2.

    Raises MissingError where it is not installed, InputError where it was set up for Keras 3.
    """
    try:
        found = import_module("keras_nlp")
    except ModuleNotFoundError as error:
        if error.name not in ("keras_nlp", "keras_core", "tree"):
            raise
        raise MissingError(
            f"This model is built from KerasNLP 0.8.2, of which {error.name} is not installed: "
            "run `pip install --no-deps keras-nlp==0.8.2 keras-core==0.1.7 dm-tree==0.1.10`."
        ) from error
    if not issubclass(found.models.BertBackbone, keras.Model):
        raise InputError("KerasNLP runs on another Keras here: set TF_USE_LEGACY_KERAS=1 and install keras-nlp==0.8.2.")
    return found


def classifier(family: str, backbone: Any, classes: int, dropout: float) -> Any:
    """The published classifier on a backbone, such as BertClassifier."""
    return _plain(getattr(library().models, f"{family}Classifier")(backbone, classes, dropout=dropout), family)


def language_model(family: str, backbone: Any, generates: bool = False) -> Any:
    """The published language model on a backbone, such as GPT2CausalLM; generates: the task with its `generate`."""
    kind = getattr(library().models, f"{family}CausalLM")
    return kind(backbone, preprocessor=None) if generates else _plain(kind(backbone), family)


def _plain(task: keras.Model, family: str) -> Any:
    """The model in a KerasNLP task.

    A task turns every batch over to a preprocessor by way of `tf.data` and cannot take a dict of arrays without one.
    """
    return keras.Model(task.input, task.output, name=family.lower())


def attention(dropout: float) -> str:
    """How Keras's MultiHeadAttention computes, whatever the rate that it was made with."""
    return "written out"


# Steps


def samples(model: keras.Model, sampler: Any) -> None:
    """Gives a compiled language model its sampler, as only compiling it anew does otherwise."""
    model._sampler = sampler


def generated(model: keras.Model, inputs: Any) -> Any:
    """One call of the model's `generate`, which no token ends early: that one would be the preprocessor's."""
    return model.generate(inputs)


def optimizer(adam: Adam) -> Any:
    """Keras's own Adam or AdamW."""
    return steps.adam(getattr(keras.optimizers, adam.name), adam)


def compiled(model: keras.Model, optimizer: Any, loss: Any, jit: bool | None) -> None:
    """Compiles the model; jit None: as it does by itself, a graph without XLA, or with it where it generates.

    Without an optimizer Keras takes one, which nothing uses.
    """
    given = {"optimizer": optimizer, "jit_compile": jit}
    model.compile(loss=loss, **{name: value for name, value in given.items() if value is not None})


def tensor(value: np.ndarray, dtype: str | None) -> tf.Tensor:
    """The array as a tensor; dtype None: as it is."""
    return tf.convert_to_tensor(value, dtype=dtype)


def switches() -> dict[str, str]:
    """Nothing: there is one backend."""
    return {}


def optimizer_switches(optimizer: Any) -> dict[str, str]:
    """The compiled optimizer, its arguments and how it runs."""
    return {
        **steps.argument_switches(optimizer),
        # The updates of Keras 2 are compiled by XLA, each for itself, where there is a GPU.
        "optimizer jit": str(steps.inner(optimizer).get_config()["jit_compile"]),
        **steps.scaler_switch(optimizer),
    }
