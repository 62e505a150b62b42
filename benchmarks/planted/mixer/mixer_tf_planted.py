"""Copies of the mixer in TensorFlow with one cause planted; all compute the same function."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from mixer_tf import Mixer, variant


class DoubleGelu(Mixer):
    def activate(self, x: tf.Tensor) -> tf.Tensor:
        return tf.cast(super().activate(tf.cast(x, tf.float64)), tf.float32)


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


# --------------------------------------------------------------------------------------------------------- the copies

#: GELU in double precision.
gelu_float64 = variant(mixer=DoubleGelu)
#: Half of the GELUs are a function of NumPy, by `tf.py_function`.
gelu_in_numpy = variant(mixer=HostGelu)
