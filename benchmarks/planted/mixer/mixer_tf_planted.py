"""Copies of the mixer in TensorFlow with one cause planted; all compute the same function."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from mixer_tf import Mixer, step

import roofline


class DoubleGelu(Mixer):
    def activate(self, x: tf.Tensor) -> tf.Tensor:
        return tf.cast(super().activate(tf.cast(x, tf.float64)), tf.float32)


def gelu_float64(batch: int | None = None) -> roofline.Step:
    """GELU in double precision."""
    return step(DoubleGelu, batch=batch)


def _gelu(x: tf.Tensor) -> np.ndarray:
    given = x.numpy()
    cubes = given * given * given
    return (0.5 * given * (1.0 + np.tanh((2.0 / np.pi) ** 0.5 * (given + 0.044715 * cubes)))).astype(given.dtype)


class HostGelu(Mixer):
    def over_patches(self, weights: dict[str, tf.Variable], x: tf.Tensor) -> tf.Tensor:
        hidden = self.product(tf.transpose(x, (0, 2, 1)), weights["patches1"])
        shape = hidden.shape
        hidden = tf.ensure_shape(tf.py_function(_gelu, [hidden], tf.float32), shape)
        return tf.transpose(self.product(hidden, weights["patches2"]), (0, 2, 1))


def gelu_in_numpy(batch: int | None = None) -> roofline.Step:
    """Half of the GELUs are a function of NumPy, by `tf.py_function`."""
    return step(HostGelu, batch=batch)
