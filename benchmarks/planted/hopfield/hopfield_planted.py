"""The Hopfield network with one thing done as one should not, and in other words."""

import jax
import jax.numpy as jnp
from hopfield import BETA, ROUNDS, gradient, make_step, make_train


def rank_by_order(scores):
    """Sorts all, and looks where the right one is."""
    order = jnp.argsort(-scores, axis=1)
    return jnp.argmax(order == jnp.arange(len(scores))[:, None], axis=1)


def all_sorted():
    return make_step(rank=rank_by_order)


def not_jitted():
    """The gradient is traced and run op by op in each step."""
    return make_train(gradient)


# Nothing was changed


def in_other_words():
    def recall(patterns, queries):
        for _ in range(ROUNDS):
            overlap = jnp.dot(jnp.multiply(BETA, queries), jnp.transpose(patterns))
            queries = jnp.dot(jax.nn.softmax(overlap, axis=1), patterns)
        return queries

    def place(overlap):
        return jnp.sum(jnp.diag(overlap)[:, None] < overlap, axis=-1)

    return make_step(recall, place)
