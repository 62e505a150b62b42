"""A physics-informed network in JAX: what is left of a heat equation at some points, by gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

HIDDEN, LAYERS, POINTS = 64, 3, 1024


def weights() -> list[tuple[Any, Any]]:
    generator = np.random.default_rng(0)
    sizes = [2, *[HIDDEN] * LAYERS, 1]
    return [
        (jnp.asarray(generator.standard_normal((a, b)) / a**0.5, jnp.float32), jnp.zeros(b, jnp.float32))
        for a, b in pairwise(sizes)
    ]


def drawn(generator: np.random.Generator) -> np.ndarray:
    return generator.uniform(-1, 1, (POINTS, 2)).astype(np.float32)


def temperature(all_: Any, point: jax.Array) -> jax.Array:
    """At one point (x, t)."""
    hidden = point
    for weight, bias in all_[:-1]:
        hidden = jnp.tanh(hidden @ weight + bias)
    weight, bias = all_[-1]
    return (hidden @ weight + bias)[0]


def left_over(all_: Any, point: jax.Array) -> jax.Array:
    """u_t - u_xx."""
    slope = jax.grad(temperature, argnums=1)
    along = jnp.array([1.0, 0.0])
    gradient, bent = jax.jvp(lambda p: slope(all_, p), (point,), (along,))
    return gradient[1] - bent[0]


def loss_of(all_: Any, points: jax.Array) -> jax.Array:
    return jnp.mean(jax.vmap(left_over, (None, 0))(all_, points) ** 2)


def updated(all_: Any, gradients: Any) -> Any:
    return jax.tree.map(lambda w, g: w - 1e-3 * g, all_, gradients)


def make_train(
    loss_of: Callable[[Any, jax.Array], jax.Array] = loss_of, source: Callable[[], Any] | None = None
) -> Callable[[], Any]:
    points = jnp.asarray(drawn(np.random.default_rng(1)))
    state = [weights()]

    @jax.jit
    def step(all_: Any, points: jax.Array) -> tuple[Any, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(all_, points)
        return updated(all_, gradients), loss

    def run() -> Any:
        state[0], loss = step(state[0], source() if source else points)
        return loss, state[0]

    return run
