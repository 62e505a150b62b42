"""The mixer of `mixer.py` in JAX, of plain functions; its copies are in `mixer_jax_planted.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

import roofline

#: (patches, width, units over patches, units over channels, layers, samples)
SIZES = {"base": (64, 128, 64, 256, 4, 8)}
PIXELS, WORDS = 48, 512

Parameters = dict[str, Any]


class Mixer:
    """The parts are methods, so that a copy changes one of them."""

    def norm(self, weight: Array, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * weight

    def activate(self, x: Array) -> Array:
        return jax.nn.gelu(x)

    def over_patches(self, weights: Parameters, x: Array) -> Array:
        hidden = self.activate(x.swapaxes(1, 2) @ weights["patches1"])
        return (hidden @ weights["patches2"]).swapaxes(1, 2)

    def over_channels(self, weights: Parameters, x: Array) -> Array:
        return jax.nn.gelu(x @ weights["channels1"]) @ weights["channels2"]

    def block(self, weights: Parameters, x: Array) -> Array:
        with jax.named_scope("patches"):
            x = x + self.over_patches(weights, self.norm(weights["norm1"], x))
        with jax.named_scope("channels"):
            return x + self.over_channels(weights, self.norm(weights["norm2"], x))

    def embed(self, parameters: Parameters, images: Array) -> Array:
        with jax.named_scope("stem"):
            return images @ parameters["stem"]

    def logits(self, parameters: Parameters, x: Array) -> Array:
        with jax.named_scope("head"):
            return self.norm(parameters["norm"], x) @ parameters["head"]

    def __call__(self, parameters: Parameters, images: Array) -> Array:
        x = self.embed(parameters, images)
        for number, weights in enumerate(parameters["blocks"]):
            with jax.named_scope(f"block{number}"):
                x = self.block(weights, x)
        return self.logits(parameters, x)


def parameters_of(patches: int, width: int, over_patches: int, over_channels: int, layers: int) -> Parameters:
    keys = iter(jax.random.split(jax.random.key(0), 4 * layers + 2))

    def matrix(rows: int, columns: int) -> Array:
        return jax.random.normal(next(keys), (rows, columns)) * rows**-0.5

    blocks = [
        {
            "norm1": jnp.linspace(0.5, 1.5, width),
            "norm2": jnp.linspace(1.5, 0.5, width),
            "patches1": matrix(patches, over_patches),
            "patches2": matrix(over_patches, patches),
            "channels1": matrix(width, over_channels),
            "channels2": matrix(over_channels, width),
        }
        for _ in range(layers)
    ]
    return {"stem": matrix(PIXELS, width), "blocks": blocks, "norm": jnp.ones(width), "head": matrix(width, WORDS)}


Runs = Callable[[Mixer, Parameters, Array], Callable[[], object]]


def whole(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    """The forward pass as one program."""
    jitted = jax.jit(mixer.__call__)
    return lambda: jitted(parameters, images)


def layer_by_layer(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    """A program for each layer."""
    embed, block, logits = jax.jit(mixer.embed), jax.jit(mixer.block), jax.jit(mixer.logits)

    def run() -> object:
        x = embed(parameters, images)
        for weights in parameters["blocks"]:
            x = block(weights, x)
        return logits(parameters, x)

    return run


def scaled(images: Array) -> Array:
    """What is done to images before they are used."""
    return images * 2.0 - 1.0


def two_programs(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    """The images are prepared by one program, for another."""
    prepare, forward = jax.jit(scaled), jax.jit(mixer.__call__)
    return lambda: forward(parameters, prepare(images))


def training(mixer: Mixer, parameters: Parameters, images: Array) -> Callable[[], object]:
    """One step of gradient descent as one program; the parameters stay what they were."""
    wanted = jax.random.randint(jax.random.key(2), images.shape[:2], 0, WORDS)

    def loss(parameters: Parameters) -> Array:
        chances = jax.nn.log_softmax(mixer(parameters, images))
        return -jnp.take_along_axis(chances, wanted[..., None], -1).mean()

    @jax.jit
    def step(parameters: Parameters) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters)
        with jax.named_scope("optimizer"):
            return value, jax.tree.map(lambda p, g: p - 1e-3 * g, parameters, gradients)

    return lambda: step(parameters)


def step(
    mode: str,
    size: str,
    mixer: type[Mixer] = Mixer,
    runs: Runs | None = None,
    batch: int | None = None,
) -> roofline.Step:
    *shape, samples = SIZES[size]
    batch = batch or samples
    parameters = parameters_of(*shape)
    images = jax.random.normal(jax.random.key(1), (batch, shape[0], PIXELS))
    runs = runs or (training if mode == "train" else whole)
    count = sum(array.size for array in jax.tree.leaves(parameters))
    return roofline.Step(
        run=runs(mixer(), parameters, images),
        mode=mode,
        parameters=count,
        trainable=count,
        samples=batch,
        batch=batch,
    )


def variant(mode: str = "infer", size: str = "base", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(mode: str = mode, size: str = size, batch: int | None = None) -> roofline.Step:
        return step(mode, size, batch=batch, **changes)

    return make_step


make_step = variant()
#: Each layer is a program of its own.
jit_per_layer = variant(runs=layer_by_layer)
#: The images are prepared by a program of their own.
prepared = variant(runs=two_programs)
