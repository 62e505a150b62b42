"""A classifier of small images in Keras 3: separable convolutions, trained batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers

SIDE, WIDTH, BATCH, CLASSES = 16, 32, 8, 10


def gelu(x: Any) -> Any:
    return keras.activations.gelu(x, approximate=True)


def network(activation: Callable[[Any], Any] = gelu) -> keras.Model:
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(WIDTH, 3, padding="same")(inputs)
    for index in range(2):
        y = layers.DepthwiseConv2D(3, padding="same", name=f"depth{index}")(x)
        y = layers.Conv2D(4 * WIDTH, 1, activation=activation, name=f"up{index}")(y)
        y = layers.Conv2D(WIDTH, 1, name=f"down{index}")(y)
        x = layers.Add()([x, y])
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    images = generator.standard_normal((BATCH, SIDE, SIDE, 3)).astype("float32")
    return images, generator.integers(CLASSES, size=BATCH)


def infer(model: keras.Model) -> Callable[[], Any]:
    images = keras.ops.convert_to_tensor(data()[0])
    return lambda: model(images, training=False)


def train(model: keras.Model, prepare: Callable[[np.ndarray], np.ndarray] = lambda x: x) -> Callable[[], Any]:
    images, labels = data()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(1e-3), loss=loss)
    return lambda: model.train_on_batch(prepare(images), labels)


def make_step() -> Callable[[], Any]:
    return infer(network())


def make_train() -> Callable[[], Any]:
    return train(network())
