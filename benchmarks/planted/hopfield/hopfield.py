"""A modern Hopfield network in JAX: states become what is stored and like them; and how often the right one is."""

import jax
import jax.numpy as jnp
import numpy as np

STATES, STORED, SIZE, ROUNDS, BETA = 64, 1024, 128, 4, 8.0


def known():
    generator = np.random.default_rng(0)
    stored = generator.standard_normal((STORED, SIZE))
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    states = stored[:STATES] + 0.1 * generator.standard_normal((STATES, SIZE))
    return jnp.asarray(stored, jnp.float32), jnp.asarray(states, jnp.float32)


def retrieve(stored, states):
    for _ in range(ROUNDS):
        states = jax.nn.softmax(BETA * states @ stored.T) @ stored
    return states


def rank(scores):
    """How many are nearer than the right one."""
    right = jnp.diagonal(scores)[:, None]
    return (scores > right).sum(1)


def make_step(retrieve=retrieve, rank=rank):
    stored, states = known()

    @jax.jit
    def compiled(stored, states):
        states = retrieve(stored, states)
        return states, rank(states @ stored.T)

    return lambda: compiled(stored, states)


def energy(stored, states):
    """How far what is retrieved lies from what was stored."""
    apart = retrieve(stored, states) - stored[:STATES]
    return (apart**2).sum(1).mean()


gradient = jax.value_and_grad(energy)
compiled_gradient = jax.jit(gradient)


def make_train(gradient=compiled_gradient):
    stored, states = known()
    change = jax.jit(lambda w, g: w - 1e-3 * g)

    def step():
        nonlocal stored
        loss, slope = gradient(stored, states)
        stored = change(stored, slope)
        return loss, stored

    return step
