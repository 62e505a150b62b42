"""What a hundred series will do next: a few residual stacks of dense layers and convolutions in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

SERIES, LENGTH, CHANNELS, STACKS, AHEAD = 64, 96, 32, 3, 24


class Norm(tf.Module):
    """Over all but the channels, of this batch."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.scale, self.offset = tf.Variable(tf.ones(CHANNELS)), tf.Variable(tf.zeros(CHANNELS))

    @tf.Module.with_name_scope
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(x, axes=[0, 1])
        return tf.nn.batch_normalization(x, mean, variance, self.offset, self.scale, 1e-3)


class Stack(tf.Module):
    """conv - norm - relu - conv, and the input beside it."""

    def __init__(self, name: str, norm: type[Norm]) -> None:
        super().__init__(name)
        generator = np.random.default_rng(0)

        def kernel() -> tf.Variable:
            return tf.Variable(generator.standard_normal((3, CHANNELS, CHANNELS)).astype(np.float32) * 0.05)

        self.first, self.second, self.norm = kernel(), kernel(), norm("norm")

    def conv(self, x: tf.Tensor, kernel: tf.Variable) -> tf.Tensor:
        return tf.nn.conv1d(x, kernel, 1, "SAME")

    @tf.Module.with_name_scope
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return x + self.conv(tf.nn.relu(self.norm(self.conv(x, self.first))), self.second)


class Forecaster(tf.Module):
    """Series (series, length) to what comes next."""

    def __init__(self, stack: type[Stack] = Stack, norm: type[Norm] = Norm) -> None:
        super().__init__("forecaster")
        generator = np.random.default_rng(0)
        self.into = tf.Variable(generator.standard_normal((1, CHANNELS)).astype(np.float32))
        self.stacks = [stack(f"stack{index}", norm) for index in range(STACKS)]
        self.out = tf.Variable(generator.standard_normal((CHANNELS, AHEAD)).astype(np.float32) * 0.1)

    def prepared(self, series: tf.Tensor) -> tf.Tensor:
        mean = tf.reduce_mean(series, axis=1, keepdims=True)
        return (series - mean) / (tf.math.reduce_std(series, axis=1, keepdims=True) + 1e-6)

    def __call__(self, series: tf.Tensor) -> tf.Tensor:
        x = self.prepared(series)[..., None] * self.into
        for stack in self.stacks:
            x = stack(x)
        return tf.reduce_mean(x, axis=1) @ self.out


def run(model: Forecaster) -> Callable[[], Any]:
    series = tf.constant(np.random.default_rng(2).standard_normal((SERIES, LENGTH)).astype(np.float32))
    return tf.function(lambda: model(series), autograph=False)


def make_step() -> Callable[[], Any]:
    return run(Forecaster())
