"""The cross network of `cross.py` in JAX: the same weights and table."""

import jax
import jax.numpy as jnp
import numpy as np

ROWS, COLUMNS, LAYERS = 2048, 96, 4


def weights():
    generator = np.random.default_rng(0)
    shapes = [(COLUMNS, n) for n in (*[COLUMNS] * LAYERS, 1)]
    return [jnp.asarray(generator.standard_normal(s) / 10, jnp.float32) for s in shapes]


def table():
    generator = np.random.default_rng(1)
    x, weight = generator.standard_normal((ROWS, COLUMNS)), generator.uniform(0.1, 1, ROWS)
    return jnp.asarray(x, jnp.float32), jnp.asarray(weight, jnp.float32)


def forward(known, first, weight):
    x = first
    for w in known[:-1]:
        normed = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        x = first * jnp.tanh(normed @ w) + x
    return weight * (x @ known[-1])[:, 0]


def make_step():
    known, (x, weight) = weights(), table()
    step = jax.jit(forward)
    return lambda: step(known, x, weight)
