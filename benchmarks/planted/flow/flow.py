"""A normalising flow of affine couplings in JAX: the density of points, and its training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SIZE, HIDDEN, COUPLINGS, BATCH = 16, 128, 6, 512
HALF = SIZE // 2

Weights = list[dict[str, Any]]


def weights() -> list[dict[str, np.ndarray]]:
    """Of each coupling: three layers, and how its output is shuffled."""
    generator = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (generator.standard_normal((rows, columns)) * (0.5 / rows**0.5)).astype(np.float32)

    return [
        {
            "w1": matrix(HALF, HIDDEN), "b1": np.zeros(HIDDEN, np.float32),
            "w2": matrix(HIDDEN, HIDDEN), "b2": np.zeros(HIDDEN, np.float32),
            "w3": matrix(HIDDEN, SIZE), "b3": np.zeros(SIZE, np.float32),
        }
        for _ in range(COUPLINGS)
    ]  # fmt: skip


def points(batch: int = BATCH) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((batch, SIZE)).astype(np.float32)


def network(one: dict[str, Any], x: jax.Array) -> jax.Array:
    hidden = jnp.tanh(x @ one["w1"] + one["b1"])
    hidden = jnp.tanh(hidden @ one["w2"] + one["b2"])
    return hidden @ one["w3"] + one["b3"]


def couple(one: dict[str, Any], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The moved point, its halves exchanged, and the logarithm of the determinant."""
    kept, moved = x[:, :HALF], x[:, HALF:]
    scale, shift = jnp.split(network(one, kept), 2, axis=1)
    scale = jnp.tanh(scale)
    return jnp.concatenate((moved * jnp.exp(scale) + shift, kept), axis=1), scale.sum(1)


def density(all_: Weights, x: jax.Array) -> jax.Array:
    """log p, (batch,)."""
    total = jnp.zeros(len(x))
    for one in all_:
        x, determinant = couple(one, x)
        total = total + determinant
    return total - 0.5 * (x**2).sum(1) - 0.5 * SIZE * jnp.log(2 * jnp.pi)


def on_device(batch: int = BATCH) -> tuple[Any, jax.Array]:
    return jax.tree.map(jnp.asarray, weights()), jnp.asarray(points(batch))


def make_step(batch: int = BATCH) -> Callable[[], jax.Array]:
    all_, x = on_device(batch)
    step = jax.jit(density)
    return lambda: step(all_, x)


def loss_of(all_: Weights, x: jax.Array) -> jax.Array:
    return -density(all_, x).mean()


def update(all_: Any, moments: Any, gradients: Any) -> tuple[Any, Any]:
    """Momentum."""
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return jax.tree.map(lambda w, m: w - 1e-4 * m, all_, moments), moments


def make_train() -> Callable[[], Any]:
    all_, x = on_device()
    moments = jax.tree.map(jnp.zeros_like, all_)

    @jax.jit
    def step(all_: Any, moments: Any, x: jax.Array) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(all_, x)
        return *update(all_, moments, gradients), loss

    state = [all_, moments]

    def run() -> Any:
        *state[:], loss = step(*state, x)
        return loss, state[0]

    return run
