"""Weights of the models in native TensorFlow by the names and in the layouts of torch's state_dict."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from roofline.models.tensorflow._layers import Convolution, Dense

TIED = {"lm_head.weight"}  # in torch's state_dict twice, here once


def set_weights(model: tf.Module, state: Mapping[str, NDArray[np.floating]]) -> None:
    """Gives `model` the weights of a torch state_dict; every weight of either must be in the other."""
    variables = named(model)
    assert set(state) - TIED == set(variables), set(state) ^ set(variables)
    for name, variable in variables.items():
        value = _turned(model, name, np.asarray(state[name]), to_torch=False)
        assert value.shape == tuple(variable.shape), name
        variable.assign(tf.cast(value, variable.dtype))


def get_weights(model: tf.Module) -> dict[str, NDArray[np.floating]]:
    """The weights of `model` as a torch state_dict has them, the tied head left out."""
    return {name: _turned(model, name, variable.numpy(), to_torch=True) for name, variable in named(model).items()}


def named(model: tf.Module) -> dict[str, tf.Variable]:
    """The variables of `model` by torch's names."""
    return {variable.name.removesuffix(":0").replace("/", "."): variable for variable in model.trainable_variables}


def to_torch(model: tf.Module, name: str, value: NDArray[np.floating]) -> NDArray[np.floating]:
    """`value`, which lies like the variable `name`, as torch has it: for gradients."""
    return _turned(model, name, value, to_torch=True)


def _turned(model: tf.Module, name: str, value: NDArray[np.floating], to_torch: bool) -> NDArray[np.floating]:
    """A weight from one layout to the other."""
    layers = [layer for layer in model.submodules if isinstance(layer, Dense | Convolution)]
    layer = next((one for one in layers if f"{one.scope.replace('/', '.')}.weight" == name), None)
    if layer is None or "transformer.h." in name:  # tables, vectors; GPT-2's Conv1D lies as ours
        return value
    if isinstance(layer, Convolution):  # (height, width, in, out) here, (out, in, height, width) there
        return value.transpose(3, 2, 0, 1) if to_torch else value.transpose(2, 3, 1, 0)
    maps = [one for one in layers if isinstance(one, Convolution)]
    if not maps or name != "dense1.weight":
        return value.T
    # The flattened maps are (height, width, channels) here, (channels, height, width) there.
    channels = max(maps, key=lambda one: one.scope).bias.shape[0]
    inputs = value.shape[0] if to_torch else value.shape[1]
    side = round((inputs / channels) ** 0.5)
    if to_torch:
        return value.reshape(side, side, channels, -1).transpose(3, 2, 0, 1).reshape(-1, inputs)
    return value.reshape(-1, channels, side, side).transpose(2, 3, 1, 0).reshape(inputs, -1)
