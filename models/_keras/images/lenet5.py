"""LeNet5 on 28 x 28 images of one channel, as in the SimpleChains comparison (a Keras Sequential).

Convolution 5 x 5 to 6 channels, ReLU, pooling 2, convolution 5 x 5 to 16, ReLU, pooling 2, dense 256-120-84-10:
44,426 parameters. Training is cross entropy and Adam with lr 3e-4, as in PyTorch. The layout is Keras's default,
channels last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._adam import Adam
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.version import Version
from roofline.models._step import loss_switch


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The convolutional network; (batch, image, image, 1) to (batch, 10)."""
    keras = version.KERAS
    dtype = keras.mixed_precision.global_policy().variable_dtype
    layers: list[Any] = [keras.Input((dims["image"], dims["image"], 1), dtype=dtype)]
    for number, width in enumerate(dims["channels"], start=1):
        layers.append(
            keras.layers.Conv2D(
                width, dims["kernel"], activation="relu", data_format="channels_last", name=f"conv{number}"
            )
        )
        layers.append(keras.layers.MaxPooling2D(2, data_format="channels_last", name=f"conv{number}_pool"))
    layers.append(keras.layers.Flatten(data_format="channels_last", name="dense1_flatten"))
    last = len(dims["dense"])
    for number, width in enumerate(dims["dense"], start=1):
        activation = "relu" if number < last else None
        layers.append(keras.layers.Dense(width, activation=activation, name=f"dense{number}"))
    return keras.Sequential(layers, name="lenet5")


def build(version: Version, workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, Adam 3e-4) of LeNet5."""
    dims = prepare(version, workload)
    draw = generator()
    return step(
        version,
        workload,
        dims,
        network(version, dims),
        draw.standard_normal((dims["batch"], dims["image"], dims["image"], 1), np.float32),
        targets=draw.integers(dims["dense"][-1], size=(dims["batch"],), dtype=np.int32),
        optimizer=Adam(lr=3e-4),
        switches={"image layout": "channels last", **loss_switch(workload, "cross entropy")},
    )
