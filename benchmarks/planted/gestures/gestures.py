"""Gestures from sensors, in TensorFlow: layers over a time and its neighbours, a pool over times, and momentum."""

import numpy as np
import tensorflow as tf

SAMPLES, TIMES, SENSORS, WIDTH, LAYERS, CLASSES = 12, 64, 12, 128, 3, 6


def weights():
    generator = np.random.default_rng(0)
    shapes = [(SENSORS, WIDTH), *[(3 * WIDTH, WIDTH)] * LAYERS, (WIDTH, CLASSES)]
    return [generator.standard_normal(s).astype(np.float32) / s[0] ** 0.5 for s in shapes]


def gestures():
    generator = np.random.default_rng(1)
    signals = generator.standard_normal((SAMPLES, TIMES, SENSORS)).astype(np.float32)
    return signals, generator.integers(0, CLASSES, SAMPLES).astype(np.int32)


def neighbours(x):
    """Each time with the one before it and the one after it."""
    wide = tf.pad(x, ((0, 0), (1, 1), (0, 0)))
    return tf.concat([wide[:, :-2], x, wide[:, 2:]], 2)


def layer(x, w):
    y = tf.nn.silu(tf.tensordot(neighbours(x), w, 1))
    return x + y * tf.math.rsqrt(tf.reduce_mean(y * y, -1, keepdims=True) + 1e-6)


def loss_of(scores, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=scores))


def updated(variables, speeds, gradients):
    for v, s, g in zip(variables, speeds, gradients, strict=True):
        s.assign(0.9 * s + g)
        v.assign_sub(1e-3 * s)


def make_train(layer=layer, loss_of=loss_of, updated=updated, whole=tf.function, also=lambda variables: None):
    x, y = (tf.constant(a) for a in gestures())
    variables = [tf.Variable(w) for w in weights()]
    speeds = [tf.Variable(tf.zeros_like(v)) for v in variables]

    @whole
    def update():
        with tf.GradientTape() as tape:
            h = tf.tensordot(x, variables[0], 1)
            for w in variables[1:-1]:
                h = layer(h, w)
            loss = loss_of(tf.reduce_mean(h, 1) @ variables[-1], y)
        updated(variables, speeds, tape.gradient(loss, variables))
        return loss

    def step():
        loss = update()
        also(variables)
        return loss

    return step
