"""Gestures, with a tf.function for each part only, with a log of weights, and in other words."""

import numpy as np
import tensorflow as tf
from gestures import layer, loss_of, make_train, neighbours, updated


def in_parts():
    """Layers, the loss and the update are functions of their own; the step that calls them is not."""
    return make_train(tf.function(layer), tf.function(loss_of), tf.function(updated), whole=lambda step: step)


log, kept = [], []


def spread(variables):
    """Quantiles of all weights and of how they changed, for a plot."""
    now = [v.numpy() for v in variables]
    changes = [a - b for a, b in zip(now, kept or now, strict=True)]
    log[:] = [np.quantile(a, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist() for a in now + changes]
    kept[:] = now


def spread_logged():
    return make_train(also=spread)


def layer_in_other_words(x, w):
    y = tf.nn.silu(tf.tensordot(neighbours(x), w, [[2], [0]]))
    return tf.add(tf.math.rsqrt(tf.reduce_mean(tf.multiply(y, y), axis=2, keepdims=True) + 1e-6) * y, x)


def in_other_words():
    return make_train(layer_in_other_words)
