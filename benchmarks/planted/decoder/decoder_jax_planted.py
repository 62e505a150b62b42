"""Copies of the decoder in JAX with one cause planted, some with two; all compute the same function."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from decoder_jax import Decoder, Parameters, step, whole
from jax import Array

import roofline


def kept_apart(x: Array) -> Array:
    return jax.lax.optimization_barrier(x)


class BarredAttention(Decoder):
    def softmax(self, scores: Array) -> Array:
        scores = kept_apart(scores)
        exponents = kept_apart(jnp.exp(kept_apart(scores - kept_apart(scores.max(-1, keepdims=True)))))
        return kept_apart(exponents / kept_apart(exponents.sum(-1, keepdims=True)))

    def attend(self, query: Array, key: Array, value: Array) -> Array:
        scores = kept_apart(kept_apart(query @ key.swapaxes(-1, -2)) * query.shape[-1] ** -0.5)
        return self.softmax(scores + self.mask) @ value


def attention_barrier(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Barriers between the ops of attention, which XLA on a CPU takes out before it fuses: nothing is planted there."""
    return step(mode, size, BarredAttention, batch=batch, seq=seq)


def unfused(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    jitted = jax.jit(decoder.__call__, compiler_options={"xla_disable_hlo_passes": "fusion"})
    return lambda: jitted(parameters, tokens)


def no_fusion(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """XLA's fusion pass is off."""
    return step(mode, size, runs=unfused, batch=batch)


class SampleBySample(Decoder):
    def attention(self, weights: Parameters, x: Array) -> Array:
        return jax.lax.map(lambda one: super(SampleBySample, self).attention(weights, one[None])[0], x)

    def ffn(self, weights: Parameters, x: Array) -> Array:
        return jax.lax.map(lambda one: super(SampleBySample, self).ffn(weights, one[None])[0], x)


def loop_over_samples(
    mode: str = "infer", size: str = "base", batch: int | None = None, seq: int | None = None
) -> roofline.Step:
    """Attention and feed-forward part take the samples one by one, in a loop inside the program."""
    return step(mode, size, SampleBySample, batch=batch, seq=seq)


class Checkpointed(Decoder):
    def block(self, weights: Parameters, x: Array) -> Array:
        return jax.checkpoint(super().block)(weights, x)


def checkpoints(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Each layer is computed again in the backward pass."""
    return step(mode, size, Checkpointed, batch=batch)


def sleeping(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    run = whole(decoder, parameters, tokens)

    def late() -> object:
        time.sleep(1e-3)
        return run()

    return late


def sleep_before(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """1 ms of sleep before each step."""
    return step(mode, size, runs=sleeping, batch=batch)


def reading(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    embed, block, logits = jax.jit(decoder.embed), jax.jit(decoder.block), jax.jit(decoder.logits)
    largest = jax.jit(lambda x: jnp.abs(x).max())

    def run() -> object:
        x = embed(parameters, tokens)
        for weights in parameters["blocks"]:
            x = block(weights, x)
            if not float(jax.device_get(largest(x))) < 1e6:
                raise ValueError("a number is too large")
        return logits(parameters, x)

    return run


def read_per_layer(
    mode: str = "infer", size: str = "tiny", batch: int | None = None, layers: int | None = None
) -> roofline.Step:
    """A program per layer, and after each its largest number is fetched."""
    return step(mode, size, runs=reading, batch=batch, layers=layers)


def eagerly(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    return lambda: decoder(parameters, tokens)


def not_jitted(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Nothing is jitted: each op is a program."""
    return step(mode, size, runs=eagerly, batch=batch)
