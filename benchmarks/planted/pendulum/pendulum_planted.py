"""Swinging up with an update out of the program, and with a loop in Python."""

import jax
import jax.numpy as jnp
import optax
from pendulum import HORIZON, cost_of, one, policy_weights, tx, worlds


def update_outside():
    """Only the gradients are jitted; optax runs op by op."""
    state = worlds()
    weights = policy_weights()
    moments = tx.init(weights)
    gradients_of = jax.jit(jax.value_and_grad(cost_of))

    def run():
        nonlocal weights, moments
        cost, gradients = gradients_of(weights, state)
        updates, moments = tx.update(gradients, moments)
        weights = optax.apply_updates(weights, updates)
        return cost, weights

    return run


def python_loop():
    """The environment's step is jitted; the loop over time is Python's, as gym would have it."""
    weights, start = policy_weights(), worlds()
    jitted = jax.jit(one)

    def run():
        state, costs = start, []
        for _ in range(HORIZON):
            state, cost = jitted(weights, state)
            costs.append(cost)
        return jnp.stack(costs)

    return run
