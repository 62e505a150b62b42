"""The flow with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flow
import jax
import jax.numpy as jnp
import numpy as np


def layer_jits(batch: int = flow.BATCH) -> Callable[[], jax.Array]:
    """Each coupling, and each sum, is a jitted function of its own; the loop over them is Python."""
    all_, x = flow.on_device(batch)
    first = jax.jit(lambda w, b, x: jnp.tanh(x @ w + b))
    last = jax.jit(lambda w, b, x: x @ w + b)

    def step() -> jax.Array:
        y, total = x, jnp.zeros(len(x))
        for one in all_:
            kept, moved = y[:, : flow.HALF], y[:, flow.HALF :]
            hidden = first(one["w2"], one["b2"], first(one["w1"], one["b1"], kept))
            scale, shift = jnp.split(last(one["w3"], one["b3"], hidden), 2, axis=1)
            scale = jnp.tanh(scale)
            y, total = jnp.concatenate((moved * jnp.exp(scale) + shift, kept), axis=1), total + scale.sum(1)
        return total - 0.5 * (y**2).sum(1) - 0.5 * flow.SIZE * jnp.log(2 * jnp.pi)

    return step


def update_outside() -> Callable[[], Any]:
    """Gradients are jitted; the update of each weight is not."""
    all_, x = flow.on_device()
    state = [all_, jax.tree.map(jnp.zeros_like, all_)]
    gradient = jax.jit(jax.value_and_grad(flow.loss_of))

    def run() -> Any:
        loss, gradients = gradient(state[0], x)
        state[:] = flow.update(*state, gradients)
        return loss, state[0]

    return run


def compiled_anew() -> Callable[[], Any]:
    """The function is defined in the step, so that it is another one each time."""
    all_, x = flow.on_device()
    inner = jax.jit(flow.density)

    def step() -> Any:
        scores = inner(all_, x)
        return jax.jit(lambda values: values - values.mean())(scores)

    return step


def compiled_once() -> Callable[[], Any]:
    all_, x = flow.on_device()
    inner = jax.jit(flow.density)
    normal = jax.jit(lambda values: values - values.mean())
    return lambda: normal(inner(all_, x))


def host_tanh() -> Callable[[], jax.Array]:
    """Squashes what is hidden by a NumPy function on the host, as it was at hand."""
    all_, x = flow.on_device()

    def squashed(hidden: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct(hidden.shape, hidden.dtype)
        return jax.pure_callback(lambda h: np.tanh(np.asarray(h)), shape, hidden)

    def couple(one: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        kept, moved = x[:, : flow.HALF], x[:, flow.HALF :]
        hidden = squashed(kept @ one["w1"] + one["b1"])
        hidden = jnp.tanh(hidden @ one["w2"] + one["b2"])
        scale, shift = jnp.split(hidden @ one["w3"] + one["b3"], 2, axis=1)
        scale = jnp.tanh(scale)
        return jnp.concatenate((moved * jnp.exp(scale) + shift, kept), axis=1), scale.sum(1)

    @jax.jit
    def density(all_: Any, x: jax.Array) -> jax.Array:
        total = jnp.zeros(len(x))
        for one in all_:
            x, determinant = couple(one, x)
            total = total + determinant
        return total - 0.5 * (x**2).sum(1) - 0.5 * flow.SIZE * jnp.log(2 * jnp.pi)

    return lambda: density(all_, x)


# Nothing was changed


def folded() -> Callable[[], jax.Array]:
    """The same with functools-like folding and other names."""
    parameters, samples = flow.on_device()

    def log_probability(parameters: Any, samples: jax.Array) -> jax.Array:
        logs = []
        for layer in parameters:
            samples, log = flow.couple(layer, samples)
            logs.append(log)
        normal = -0.5 * jnp.square(samples).sum(axis=1) - 0.5 * flow.SIZE * jnp.log(2 * jnp.pi)
        return normal + sum(logs)

    compiled = jax.jit(log_probability)
    return lambda: compiled(parameters, samples)
