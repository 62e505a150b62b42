"""LeNet5 in native TensorFlow on 28 x 28 images of one channel, as in the SimpleChains comparison.

The model of `models/torch/images/lenet5.py`: 44,426 parameters, cross entropy and Adam with lr 3e-4. Images and maps
are (batch, height, width, channels), TensorFlow's layout, so the first dense layer reads its 256 inputs in another
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import tensorflow as tf

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._step import loss_switch
from roofline.models.tensorflow._layers import FLOAT32, Convolution, Dense, Dtypes, scoped, uniform
from roofline.models.tensorflow._step import classification_loss, gaussian, numbers, prepare, step


class LeNet5(tf.Module):
    """Convolutions with ReLU and pooling, then dense layers; (B, image, image, 1) to (B, classes)."""

    def __init__(self, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.convolutions, self.dense = [], []
        side = dims["image"]
        for number, (inputs, outputs) in enumerate(pairwise([1, *dims["channels"]]), start=1):
            self.convolutions.append(Convolution(f"conv{number}", dims["kernel"], inputs, outputs, dtypes))
            side = (side - dims["kernel"] + 1) // 2
        widths = [dims["channels"][-1] * side * side, *dims["dense"]]
        for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            self.dense.append(Dense(f"dense{number}", inputs, outputs, dtypes, uniform(inputs)))

    def __call__(self, images: tf.Tensor, training: bool) -> tf.Tensor:
        """The logits; training changes nothing."""
        x = images
        for layer in self.convolutions:
            x = layer(x)
            with scoped(f"{layer.scope}_relu"):
                x = tf.nn.relu(x)
            with scoped(f"{layer.scope}_pool"):
                x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        with scoped("dense1_flatten"):
            x = tf.reshape(x, (x.shape[0], -1))
        for layer in self.dense[:-1]:
            x = layer(x)
            with scoped(f"{layer.scope}_relu"):
                x = tf.nn.relu(x)
        return self.dense[-1](x)


def network(dims: Mapping[str, Any], dtypes: Dtypes = FLOAT32) -> tf.Module:
    """The convolutional network; (batch, image, image, 1) to (batch, 10)."""
    return LeNet5(dims, dtypes)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, Adam 3e-4) of LeNet5."""
    dims = prepare(workload)
    return step(
        workload,
        dims,
        network,
        {"images": gaussian("images", (dims["batch"], dims["image"], dims["image"], 1))},
        targets=numbers("labels", dims["dense"][-1], (dims["batch"],)),
        loss=classification_loss,
        optimizer=Adam(lr=3e-4),
        switches=loss_switch(workload, "cross entropy"),
    )
