"""The shop, with visits that a generator in Python reads, and with a measure of how good the list is."""

import numpy as np
import tensorflow as tf
from shop import GOODS, LENGTH, VISITS, make_train


def generated():
    """A tf.data pipeline on top of a Python generator, one visit at a time, nothing prefetched."""
    generator = np.random.default_rng(1)
    seen, bought = generator.integers(0, GOODS, (VISITS, LENGTH)), generator.integers(0, GOODS, VISITS)
    lines = [",".join(map(str, [*row, last])) for row, last in zip(seen, bought, strict=True)]

    def visits():
        while True:
            for line in lines:
                *first, last = (int(number) for number in line.split(","))
                yield np.array(first, np.int32), np.int32(last)

    shapes = (tf.TensorSpec((LENGTH,), tf.int32), tf.TensorSpec((), tf.int32))
    iterator = iter(tf.data.Dataset.from_generator(visits, output_signature=shapes).batch(VISITS))
    return lambda: next(iterator)


def read_line_by_line():
    return make_train(batches=generated)


def ranks(scores, bought):
    """At which place of a full list what was bought stands, in each step of training."""
    order = tf.argsort(scores, axis=1, direction="DESCENDING")
    place = tf.argmax(tf.cast(order == bought[:, None], tf.int32), axis=1)
    return tf.reduce_mean(1.0 / tf.cast(place + 1, tf.float32))


def ranked():
    return make_train(also=ranks)
