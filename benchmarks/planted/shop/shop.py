"""What a visitor buys next, in TensorFlow: a GRU over what was looked at, trained with Adam by a tf.GradientTape."""

import numpy as np
import tensorflow as tf

VISITS, LENGTH, GOODS, SIZE = 32, 12, 1500, 64


class Shop(tf.Module):
    def __init__(self):
        super().__init__("shop")
        generator = np.random.default_rng(0)

        def weight(*shape):
            return tf.Variable(generator.standard_normal(shape).astype(np.float32) / shape[-1] ** 0.5)

        self.goods = weight(GOODS, SIZE)
        self.gates, self.fresh = weight(2 * SIZE, 2 * SIZE), weight(2 * SIZE, SIZE)

    def __call__(self, seen):
        x = tf.gather(self.goods, seen)
        h = tf.zeros((VISITS, SIZE))
        for t in range(LENGTH):
            keep, forget = tf.split(tf.sigmoid(tf.concat([x[:, t], h], 1) @ self.gates), 2, axis=1)
            h = keep * h + (1 - keep) * tf.tanh(tf.concat([x[:, t], forget * h], 1) @ self.fresh)
        return tf.matmul(h, self.goods, transpose_b=True)


def batches():
    """One batch, of numbers that are there."""
    generator = np.random.default_rng(1)
    seen, bought = generator.integers(0, GOODS, (VISITS, LENGTH)), generator.integers(0, GOODS, VISITS)
    seen, bought = tf.constant(seen, tf.int32), tf.constant(bought, tf.int32)
    return lambda: (seen, bought)


def loss_of(scores, bought):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=bought, logits=scores))


def make_train(batches=batches, loss_of=loss_of, also=lambda scores, bought: None):
    model, next_batch = Shop(), batches()

    @tf.function
    def update(seen, bought):
        with tf.GradientTape() as tape:
            scores = model(seen)
            loss = loss_of(scores, bought)
        variables = [model.goods, model.gates, model.fresh]
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(1e-3 * tf.convert_to_tensor(g))
        return loss, also(scores, bought)

    return lambda: update(*next_batch())[0]
