"""The autoencoder, with noise of strength 0, with a schedule compiled anew, and with a histogram of its weights."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from bottleneck import BATCH, make_train
from flax import nnx


def noisy(strengths=(0.0, 0.0, 0.0)):
    """Three kinds of noise could be added, of which all are switched off."""
    key = [jax.random.key(0)]

    @jax.jit
    def noised(key, x):
        for strength in strengths:
            key, now = jax.random.split(key)
            x = x + strength * jax.random.normal(now, x.shape)
        return key, x

    def before(x):
        key[0], x = noised(key[0], x)
        return x

    return make_train(before=before)


def rate_compiled():
    """The step's number is static, so that the schedule of one number is compiled in each step."""
    count = [0]

    @partial(jax.jit, static_argnums=1)
    def scaled(x, number):
        warm = min(1.0, (number + 1e6) / 1e3)
        return x * warm

    def before(x):
        count[0] += 1
        return scaled(x, count[0])

    return make_train(before=before, batch=8 * BATCH)


def histograms():
    """What TensorBoard shows: all weights go to NumPy, which sorts them into bins."""
    kept = []

    def extra(model):
        kept.clear()
        for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)):
            values = np.asarray(leaf).ravel()
            kept.append((np.histogram(values, 30), np.percentile(values, [5, 50, 95])))

    return make_train(extra=extra)


def in_other_words():
    """The same loss by optax-like words: a mean of a square."""
    return make_train(lambda model, x: jnp.mean((model(x) - x) ** 2))
