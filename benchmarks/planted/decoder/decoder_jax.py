"""The decoder of `decoder.py` in JAX, of plain functions; its copies are in `decoder_jax_planted.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

import roofline

#: As in `decoder.py`.
SIZES = {"base": (96, 4, 256, 4, 4, 64), "tiny": (48, 4, 96, 4, 1, 16), "narrow": (32, 4, 64, 4, 32, 64)}
VOCABULARY = 512

Parameters = dict[str, Any]


class Decoder:
    """The parts are methods, so that a copy changes one of them."""

    def __init__(self, heads: int, seq: int, head_width: int) -> None:
        self.heads = heads
        angles = jnp.outer(jnp.arange(seq), 10000.0 ** (-jnp.arange(head_width // 2) / (head_width // 2)))
        self.cos, self.sin = jnp.cos(angles), jnp.sin(angles)
        self.mask = jnp.where(jnp.tril(jnp.ones((seq, seq), bool)), 0.0, -jnp.inf)

    def norm(self, weight: Array, x: Array) -> Array:
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight

    def rotate(self, x: Array) -> Array:
        one, two = jnp.split(x, 2, -1)
        return jnp.concatenate([one * self.cos - two * self.sin, two * self.cos + one * self.sin], -1)

    def softmax(self, scores: Array) -> Array:
        return jax.nn.softmax(scores, -1)

    def attend(self, query: Array, key: Array, value: Array) -> Array:
        scores = query @ key.swapaxes(-1, -2) * query.shape[-1] ** -0.5 + self.mask
        return self.softmax(scores) @ value

    def attention(self, weights: Parameters, x: Array) -> Array:
        batch, seq, width = x.shape
        parts = (x @ weights["qkv"]).reshape(batch, seq, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        attended = self.attend(self.rotate(parts[0]), self.rotate(parts[1]), parts[2])
        return attended.transpose(0, 2, 1, 3).reshape(batch, seq, width) @ weights["out"]

    def ffn(self, weights: Parameters, x: Array) -> Array:
        return (jax.nn.silu(x @ weights["gate"]) * (x @ weights["up"])) @ weights["down"]

    def block(self, weights: Parameters, x: Array) -> Array:
        with jax.named_scope("norm1"):
            normal = self.norm(weights["norm1"], x)
        with jax.named_scope("attention"):
            x = x + self.attention(weights, normal)
        with jax.named_scope("norm2"):
            normal = self.norm(weights["norm2"], x)
        with jax.named_scope("ffn"):
            return x + self.ffn(weights, normal)

    def embed(self, parameters: Parameters, tokens: Array) -> Array:
        with jax.named_scope("embedding"):
            return parameters["embedding"][tokens]

    def logits(self, parameters: Parameters, x: Array) -> Array:
        with jax.named_scope("norm"):
            x = self.norm(parameters["norm"], x)
        with jax.named_scope("head"):
            return x @ parameters["head"]

    def __call__(self, parameters: Parameters, tokens: Array) -> Array:
        x = self.embed(parameters, tokens)
        for number, weights in enumerate(parameters["blocks"]):
            with jax.named_scope(f"block{number}"):
                x = self.block(weights, x)
        return self.logits(parameters, x)


def parameters_of(width: int, units: int, layers: int) -> Parameters:
    keys = iter(jax.random.split(jax.random.key(0), 5 * layers + 2))

    def matrix(rows: int, columns: int) -> Array:
        return jax.random.normal(next(keys), (rows, columns)) * rows**-0.5

    blocks = [
        {
            "norm1": jnp.linspace(0.5, 1.5, width),
            "norm2": jnp.linspace(1.5, 0.5, width),
            "qkv": matrix(width, 3 * width),
            "out": matrix(width, width),
            "gate": matrix(width, units),
            "up": matrix(width, units),
            "down": matrix(units, width),
        }
        for _ in range(layers)
    ]
    return {
        "embedding": matrix(VOCABULARY, width),
        "blocks": blocks,
        "norm": jnp.ones(width),
        "head": matrix(width, VOCABULARY),
    }


Runs = Callable[[Decoder, Parameters, Array], Callable[[], object]]


def whole(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    """The forward pass as one program."""
    jitted = jax.jit(decoder.__call__)
    return lambda: jitted(parameters, tokens)


def layer_by_layer(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    """A program for each layer."""
    embed, block, logits = jax.jit(decoder.embed), jax.jit(decoder.block), jax.jit(decoder.logits)

    def run() -> object:
        x = embed(parameters, tokens)
        for weights in parameters["blocks"]:
            x = block(weights, x)
        return logits(parameters, x)

    return run


def op_by_op(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    """A program for each norm, attention and feed-forward part, and sums outside of any."""
    embed, norm, attention = jax.jit(decoder.embed), jax.jit(decoder.norm), jax.jit(decoder.attention)
    ffn, logits = jax.jit(decoder.ffn), jax.jit(decoder.logits)

    def run() -> object:
        x = embed(parameters, tokens)
        for weights in parameters["blocks"]:
            x = x + attention(weights, norm(weights["norm1"], x))
            x = x + ffn(weights, norm(weights["norm2"], x))
        return logits(parameters, x)

    return run


def training(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    """One step of gradient descent as one program; the parameters stay what they were."""
    targets = jnp.roll(tokens, 1, 1)

    def loss(parameters: Parameters) -> Array:
        chances = jax.nn.log_softmax(decoder(parameters, tokens))
        return -jnp.take_along_axis(chances, targets[..., None], -1).mean()

    @jax.jit
    def step(parameters: Parameters) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters)
        with jax.named_scope("optimizer"):
            return value, jax.tree.map(lambda p, g: p - 1e-3 * g, parameters, gradients)

    return lambda: step(parameters)


def step(
    mode: str,
    size: str,
    decoder: type[Decoder] = Decoder,
    runs: Runs | None = None,
    batch: int | None = None,
    seq: int | None = None,
    layers: int | None = None,
) -> roofline.Step:
    width, heads, units, sized_layers, samples, tokens = SIZES[size]
    batch, seq, layers = batch or samples, seq or tokens, layers or sized_layers
    parameters = parameters_of(width, units, layers)
    ids = jax.random.randint(jax.random.key(1), (batch, seq), 0, VOCABULARY)
    made = decoder(heads, seq, width // heads)
    runs = runs or (training if mode == "train" else whole)
    count = sum(array.size for array in jax.tree.leaves(parameters))
    return roofline.Step(
        run=runs(made, parameters, ids),
        mode=mode,
        parameters=count,
        trainable=count,
        samples=batch,
        tokens=batch * seq,
        batch=batch,
        seq=seq,
    )


def variant(mode: str = "infer", size: str = "base", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(
        mode: str = mode, size: str = size, batch: int | None = None, seq: int | None = None, layers: int | None = None
    ) -> roofline.Step:
        return step(mode, size, batch=batch, seq=seq, layers=layers, **changes)

    return make_step


make_step = variant()
#: Each layer is a program of its own.
jit_per_layer = variant(runs=layer_by_layer)
#: Each part of a layer is a program of its own.
jit_per_part = variant(runs=op_by_op)
