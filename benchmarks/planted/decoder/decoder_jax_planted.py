"""Copies of the decoder in JAX with one cause planted, some with two; all compute the same function."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from decoder_jax import Decoder, Parameters, variant, whole
from jax import Array


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


def unfused(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    jitted = jax.jit(decoder.__call__, compiler_options={"xla_disable_hlo_passes": "fusion"})
    return lambda: jitted(parameters, tokens)


class SampleBySample(Decoder):
    def attention(self, weights: Parameters, x: Array) -> Array:
        return jax.lax.map(lambda one: super(SampleBySample, self).attention(weights, one[None])[0], x)

    def ffn(self, weights: Parameters, x: Array) -> Array:
        return jax.lax.map(lambda one: super(SampleBySample, self).ffn(weights, one[None])[0], x)


class Checkpointed(Decoder):
    def block(self, weights: Parameters, x: Array) -> Array:
        return jax.checkpoint(super().block)(weights, x)


def sleeping(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    run = whole(decoder, parameters, tokens)

    def late() -> object:
        time.sleep(1e-3)
        return run()

    return late


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


def eagerly(decoder: Decoder, parameters: Parameters, tokens: Array) -> Callable[[], object]:
    return lambda: decoder(parameters, tokens)


# --------------------------------------------------------------------------------------------------------- the copies

#: Barriers between the ops of attention, which XLA on a CPU takes out before it fuses: nothing is planted there.
attention_barrier = variant(decoder=BarredAttention)
#: XLA's fusion pass is off.
no_fusion = variant(runs=unfused)
#: Attention and feed-forward part take the samples one by one, in a loop inside the program.
loop_over_samples = variant(decoder=SampleBySample)
#: Each layer is computed again in the backward pass.
checkpoints = variant(mode="train", decoder=Checkpointed)
#: 1 ms of sleep before each step.
sleep_before = variant(runs=sleeping)
#: A program per layer, and after each its largest number is fetched.
read_per_layer = variant(size="tiny", runs=reading)
#: Nothing is jitted: each op is a program.
not_jitted = variant(runs=eagerly)
