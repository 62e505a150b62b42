"""Pictures to tiles and tiles to classes in Keras 3: a small ConvMixer with layers of one's own."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops

SIDE, TILE, WIDTH, BATCH, CLASSES = 32, 4, 64, 16, 10


class Norm(layers.Layer):
    """Over channels, with a scale."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        return ops.rms_normalization(x, self.scale)


def network(norm: type[layers.Layer] = Norm, act: Any = "gelu") -> keras.Model:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(WIDTH, TILE, strides=TILE)(inputs)
    for _ in range(3):
        y = layers.Dense(WIDTH, activation=act)(norm()(x))
        x = layers.Add()([x, norm()(layers.Dense(WIDTH)(y))])
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))


def pictures() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return generator.random((BATCH, SIDE, SIDE, 3), "float32"), generator.integers(CLASSES, size=BATCH)


def show(model: keras.Model):
    x = ops.convert_to_tensor(pictures()[0])
    return lambda: model(x, training=False)


def train(model: keras.Model, before=lambda model, x: x, metrics=None):
    x, y = pictures()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=metrics)
    return lambda: model.train_on_batch(before(model, x), y)


def make_step():
    return show(network())


def make_train():
    return train(network())
