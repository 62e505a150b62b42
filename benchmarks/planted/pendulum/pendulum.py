"""Swinging up: worlds are rolled out by lax.scan under a policy, and the gradient of the reward is followed (optax)."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

WORLDS, HORIZON, HIDDEN = 256, 24, 64


def policy_weights():
    generator = np.random.default_rng(0)
    sizes = ((3, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
    return [
        {"w": jnp.asarray(generator.standard_normal(s) / s[0] ** 0.5, jnp.float32), "b": jnp.zeros(s[1])} for s in sizes
    ]


def worlds():
    angle = np.random.default_rng(1).uniform(-np.pi, np.pi, WORLDS).astype(np.float32)
    return jnp.stack([angle, jnp.zeros(WORLDS)], axis=1)


def act(weights, state):
    h = jnp.stack([jnp.cos(state[:, 0]), jnp.sin(state[:, 0]), state[:, 1]], axis=1)
    for layer in weights[:-1]:
        h = jnp.tanh(h @ layer["w"] + layer["b"])
    return 2 * jnp.tanh(h @ weights[-1]["w"] + weights[-1]["b"])[:, 0]


def physics(state, torque):
    angle, speed = state.T
    speed = jnp.clip(speed + 0.05 * (15 * jnp.sin(angle) + 3 * torque), -8, 8)
    angle = angle + 0.05 * speed
    wrapped = jnp.mod(angle + jnp.pi, 2 * jnp.pi) - jnp.pi
    return jnp.stack([angle, speed], axis=1), wrapped**2 + 0.1 * speed**2 + 1e-3 * torque**2


def one(weights, state):
    return physics(state, act(weights, state))


def cost_of(weights, state):
    _, costs = jax.lax.scan(lambda s, _: one(weights, s), state, length=HORIZON)
    return costs.mean()


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-4))


def make_train():
    state = worlds()
    weights = policy_weights()
    moments = tx.init(weights)

    @jax.jit
    def step(weights, moments):
        cost, gradients = jax.value_and_grad(cost_of)(weights, state)
        updates, moments = tx.update(gradients, moments)
        return optax.apply_updates(weights, updates), moments, cost

    def run():
        nonlocal weights, moments
        weights, moments, cost = step(weights, moments)
        return cost, weights

    return run


def watch():
    """Worlds are only rolled out, and their costs returned."""
    weights, state = policy_weights(), worlds()
    run = jax.jit(lambda w, s: jax.lax.scan(lambda s, _: one(w, s), s, length=HORIZON)[1])
    return lambda: run(weights, state)
