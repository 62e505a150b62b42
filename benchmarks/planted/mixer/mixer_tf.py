"""The mixer of `mixer.py` in TensorFlow, of plain functions; its copies are in `mixer_tf_planted.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import roofline

PATCHES, WIDTH, OVER_PATCHES, OVER_CHANNELS, LAYERS, SAMPLES = 64, 128, 64, 256, 4, 4
PIXELS, WORDS = 48, 512

Weights = dict[str, tf.Variable]


class Mixer:
    """The parts are methods, so that a copy changes one of them."""

    def __init__(self) -> None:
        generator = tf.random.Generator.from_seed(0)

        def matrix(rows: int, columns: int) -> tf.Variable:
            return tf.Variable(generator.normal((rows, columns)) * rows**-0.5)

        self.stem, self.head = matrix(PIXELS, WIDTH), matrix(WIDTH, WORDS)
        self.scale = tf.Variable(tf.ones(WIDTH))
        self.blocks: list[Weights] = [
            {
                "norm1": tf.Variable(tf.linspace(0.5, 1.5, WIDTH)),
                "norm2": tf.Variable(tf.linspace(1.5, 0.5, WIDTH)),
                "patches1": matrix(PATCHES, OVER_PATCHES),
                "patches2": matrix(OVER_PATCHES, PATCHES),
                "channels1": matrix(WIDTH, OVER_CHANNELS),
                "channels2": matrix(OVER_CHANNELS, WIDTH),
            }
            for _ in range(LAYERS)
        ]

    def variables(self) -> list[tf.Variable]:
        return [self.stem, self.head, self.scale, *(each for block in self.blocks for each in block.values())]

    def norm(self, scale: tf.Variable, x: tf.Tensor) -> tf.Tensor:
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        return centred * tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + 1e-5) * scale

    def product(self, x: tf.Tensor, weights: tf.Variable) -> tf.Tensor:
        return tf.tensordot(x, weights, 1)

    def activate(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.gelu(x, approximate=True)

    def over_patches(self, weights: Weights, x: tf.Tensor) -> tf.Tensor:
        hidden = self.activate(self.product(tf.transpose(x, (0, 2, 1)), weights["patches1"]))
        return tf.transpose(self.product(hidden, weights["patches2"]), (0, 2, 1))

    def over_channels(self, weights: Weights, x: tf.Tensor) -> tf.Tensor:
        return self.product(self.activate(self.product(x, weights["channels1"])), weights["channels2"])

    def block(self, weights: Weights, x: tf.Tensor) -> tf.Tensor:
        x = x + self.over_patches(weights, self.norm(weights["norm1"], x))
        return x + self.over_channels(weights, self.norm(weights["norm2"], x))

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("stem"):
            x = self.product(images, self.stem)
        for number, weights in enumerate(self.blocks):
            with tf.name_scope(f"block{number}"):
                x = self.block(weights, x)
        with tf.name_scope("head"):
            return self.product(self.norm(self.scale, x), self.head)


Runs = Callable[[Mixer, tf.Tensor], Callable[[], Any]]


def graph(mixer: Mixer, images: tf.Tensor) -> Callable[[], Any]:
    """A `tf.function`, without XLA."""
    function = tf.function(mixer.__call__)
    return lambda: function(images)


def compiled(mixer: Mixer, images: tf.Tensor) -> Callable[[], Any]:
    """A `tf.function` that XLA compiles."""
    function = tf.function(mixer.__call__, jit_compile=True)
    return lambda: function(images)


def step(mixer: type[Mixer] = Mixer, runs: Runs = graph, batch: int | None = None) -> roofline.Step:
    """One forward pass."""
    batch = batch or SAMPLES
    made = mixer()
    images = tf.random.Generator.from_seed(1).normal((batch, PATCHES, PIXELS))
    count = sum(int(tf.size(each)) for each in made.variables())
    return roofline.Step(run=runs(made, images), parameters=count, trainable=count, samples=batch, batch=batch)


def variant(**changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(batch: int | None = None) -> roofline.Step:
        return step(batch=batch, **changes)

    return make_step


make_step = variant()
with_xla = variant(runs=compiled)
