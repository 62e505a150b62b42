"""Linear recurrences in JAX: what comes in has a low rank, and states decay channel by channel."""

import jax
import jax.numpy as jnp
import numpy as np

SAMPLES, LENGTH, WIDTH, STATES, RANK, LAYERS = 48, 64, 128, 128, 8, 4


def weights():
    generator = np.random.default_rng(0)

    def weight(*shape):
        return generator.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5

    return [
        {"in": weight(WIDTH, RANK), "spread": weight(RANK, STATES), "out": weight(STATES, WIDTH)} for _ in range(LAYERS)
    ]


def signals(length=LENGTH):
    return np.random.default_rng(1).standard_normal((length, SAMPLES, WIDTH)).astype(np.float32)


def decays():
    """In float64, as NumPy has it."""
    return np.exp(-np.exp(np.linspace(-5, 0, STATES)))


def taken_in(w, x):
    return (x @ w["in"]) @ w["spread"]


def layer(w, x, decay, taken_in):
    u = jnp.sqrt(1 - decay**2) * taken_in(w, x)

    def one(h, u):
        h = decay * h + u
        return h, h * jax.nn.sigmoid(h)

    h = jax.lax.scan(one, jnp.zeros(u.shape[1:], u.dtype), u)[1]
    return x + h.astype(x.dtype) @ w["out"]


def make_step(decay=None, taken_in=taken_in, length=LENGTH):
    known, x = jax.tree.map(jnp.asarray, weights()), jnp.asarray(signals(length))
    decay = jnp.asarray(decays(), jnp.float32) if decay is None else decay

    @jax.jit
    def forward(known, x):
        for w in known:
            x = layer(w, x, decay, taken_in)
        return x

    return lambda: forward(known, x)
