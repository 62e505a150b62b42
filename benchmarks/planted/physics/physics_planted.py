"""The network with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import physics

PARTS = 32


def looped_loss(all_: Any, points: jax.Array) -> jax.Array:
    """A few points at a time, in a loop that the compiler must keep."""
    parts = points.reshape(PARTS, -1, 2)
    left = jax.lax.map(lambda part: jax.vmap(physics.left_over, (None, 0))(all_, part), parts)
    return jnp.mean(left**2)


def looped() -> Callable[[], Any]:
    return physics.make_train(looped_loss)


def points_in_python() -> Callable[[], Any]:
    """Draws new points for every step, number by number in Python, until enough lie inside."""
    generator = np.random.default_rng(1)

    def source() -> np.ndarray:
        kept: list[tuple[float, float]] = []
        while len(kept) < physics.POINTS:
            x, t = generator.uniform(-1, 1, 2)
            if x * x + t * t <= 2.0:
                kept.append((x, t))
        return np.array(kept, np.float32)

    return physics.make_train(source=source)


def spoken() -> Callable[[], Any]:
    """Tells the host of each part of the loss while it computes, sorted."""
    seen: list[int] = []

    def told(left: np.ndarray) -> None:
        values = np.sort(np.asarray(left)).tolist()
        seen.append(len([f"{value:.5e}" for value in values]))

    def loss_of(all_: Any, points: jax.Array) -> jax.Array:
        left = jax.vmap(physics.left_over, (None, 0))(all_, points)
        jax.debug.callback(told, jax.lax.stop_gradient(left))
        return jnp.mean(left**2)

    return physics.make_train(loss_of)
