"""Which topic a text has, in TensorFlow: words are hashed, looked up, and pooled by attention with several heads."""

import numpy as np
import tensorflow as tf

TEXTS, LENGTH, ROWS, SIZE, HEADS, TOPICS = 24, 64, 2000, 96, 4, 12


class Topics(tf.Module):
    def __init__(self):
        super().__init__("topics")
        generator = np.random.default_rng(0)

        def weight(*shape):
            return tf.Variable(generator.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5)

        self.table = weight(ROWS, SIZE)
        self.key, self.value, self.query = weight(SIZE, SIZE), weight(SIZE, SIZE), weight(SIZE, HEADS)
        self.hidden, self.out = weight(SIZE, 2 * SIZE), weight(2 * SIZE, TOPICS)
        self.scale = tf.Variable(tf.ones(SIZE))

    def ids(self, words):
        return tf.strings.to_hash_bucket_fast(words, ROWS)

    def normed(self, x):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis=-1, keepdims=True) + 1e-6) * self.scale

    def pooled(self, x):
        share = tf.nn.softmax(tf.tanh(x @ self.key) @ self.query, axis=1)
        value = tf.reshape(x @ self.value, (TEXTS, LENGTH, HEADS, -1))
        return tf.reshape(tf.einsum("nlh,nlhc->nhc", share, value), (TEXTS, SIZE))

    def __call__(self, words):
        x = tf.gather(self.table, self.ids(words))
        x = self.pooled(self.normed(x))
        return tf.nn.gelu(x @ self.hidden) @ self.out


def texts():
    generator = np.random.default_rng(1)
    return np.array([[f"word{n}" for n in row] for row in generator.integers(0, 5000, (TEXTS, LENGTH))])


def make_step(model=Topics, tokens=None):
    made, words = model(), tf.constant(texts())

    @tf.function
    def step():
        return made(words)

    return step
