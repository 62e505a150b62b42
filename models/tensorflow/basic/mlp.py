"""A network of 4-32-16-4 units with tanh in native TensorFlow that learns the matrix exponential of 2 x 2 matrices.

The model of `models/torch/basic/mlp.py`: 756 parameters, all 10,000 samples in every step, mean squared error, Adam
1e-3.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import tensorflow as tf

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._step import loss_switch
from roofline.models.tensorflow._layers import FLOAT32, Dense, Dtypes, scoped, uniform
from roofline.models.tensorflow._step import gaussian, prepare, step


class Mlp(tf.Module):
    """Dense layers with tanh between them; (B, 4) to (B, 4)."""

    def __init__(self, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.dense = [
            Dense(f"dense{number}", inputs, outputs, dtypes, uniform(inputs))
            for number, (inputs, outputs) in enumerate(pairwise(dims["widths"]), start=1)
        ]

    def __call__(self, vectors: tf.Tensor, training: bool) -> tf.Tensor:
        """The output; training changes nothing."""
        x = vectors
        for layer in self.dense[:-1]:
            x = layer(x)
            with scoped(f"{layer.scope}_tanh"):
                x = tf.tanh(x)
        return self.dense[-1](x)


def network(dims: Mapping[str, Any], dtypes: Dtypes = FLOAT32) -> tf.Module:
    """The dense network; (batch, 4) to (batch, 4)."""
    return Mlp(dims, dtypes)


def loss(output: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Mean squared error."""
    return tf.reduce_mean(tf.math.squared_difference(output, tf.cast(targets, output.dtype)))


def build(workload: Workload) -> Step:
    """One forward pass or one training step (mean squared error, Adam 1e-3) over all samples."""
    dims = prepare(workload)
    matrices = gaussian("matrices", (dims["batch"], 2, 2))
    return step(
        workload,
        dims,
        network,
        {"vectors": tf.reshape(matrices, (-1, 4))},
        targets=tf.reshape(tf.linalg.expm(matrices), (-1, 4)),
        loss=loss,
        optimizer=Adam(),
        switches=loss_switch(workload, "mean squared error"),
    )
