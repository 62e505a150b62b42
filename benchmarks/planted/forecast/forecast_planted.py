"""The forecaster with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from forecast import AHEAD, CHANNELS, LENGTH, SERIES, Forecaster, Norm, Stack, run


class WideNorm(Norm):
    """In double precision, so that no small difference gets lost."""

    @tf.Module.with_name_scope
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        wide = tf.cast(x, tf.float64)
        scale, offset = (tf.cast(one, tf.float64) for one in (self.scale, self.offset))
        mean, variance = tf.nn.moments(wide, axes=[0, 1])
        return tf.cast(tf.nn.batch_normalization(wide, mean, variance, offset, scale, 1e-3), tf.float32)


def wide_norm() -> Callable[[], Any]:
    return run(Forecaster(norm=WideNorm))


class InPython(Forecaster):
    """Prepares its series in Python, one after the other."""

    def prepared(self, series: tf.Tensor) -> tf.Tensor:
        # An op, as a shape that is only set is not kept in the graph.
        return tf.ensure_shape(tf.py_function(self.one_by_one, [series], tf.float32), (SERIES, LENGTH))

    @staticmethod
    def one_by_one(series: Any) -> np.ndarray:
        rows = []
        for row in series.numpy().tolist():
            mean = sum(row) / len(row)
            deviation = (sum((value - mean) ** 2 for value in row) / len(row)) ** 0.5
            rows.append([(value - mean) / (deviation + 1e-6) for value in row])
        return np.array(rows, np.float32)


def in_python() -> Callable[[], Any]:
    return run(InPython())


class Mapped(Stack):
    """One series after the other."""

    def conv(self, x: tf.Tensor, kernel: tf.Variable) -> tf.Tensor:
        rows = tf.map_fn(lambda row: super(Mapped, self).conv(row[None], kernel)[0], x)
        rows.set_shape((SERIES, LENGTH, CHANNELS))
        return rows


def mapped() -> Callable[[], Any]:
    return run(Forecaster(stack=Mapped))


# Nothing was changed, or so much that there is nothing to compare


class Renamed(Forecaster):
    """Other names; the same graph."""

    def __call__(self, series: tf.Tensor) -> tf.Tensor:
        hidden = tf.expand_dims(self.prepared(series), -1) * self.into
        for block in self.stacks:
            hidden = block(hidden)
        forecast = tf.matmul(tf.reduce_mean(hidden, 1), self.out)
        return tf.ensure_shape(forecast, (SERIES, AHEAD))


def renamed() -> Callable[[], Any]:
    return run(Renamed())
