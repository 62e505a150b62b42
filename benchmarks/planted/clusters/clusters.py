"""Soft k-means in JAX: some rounds of distances, shares and new middles, in one jitted step."""

import jax
import jax.numpy as jnp
import numpy as np

POINTS, SIZE, K, ROUNDS = 4096, 16, 24, 6


def data():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((POINTS, SIZE), dtype=np.float32)
    return jnp.asarray(x), jnp.asarray(x[:K].copy())


def distances(x, c):
    return (x**2).sum(1)[:, None] - 2 * x @ c.T + (c**2).sum(1)


def shares(d):
    return jax.nn.softmax(-d, axis=1)


def one_round(x, c, shares=shares):
    share = shares(distances(x, c))
    return share.T @ x / (share.sum(0)[:, None] + 1e-6)


@jax.jit
def fitted(x, c):
    for _ in range(ROUNDS):
        c = one_round(x, c)
    return c


def make_step():
    x, c = data()
    return lambda: fitted(x, c)
