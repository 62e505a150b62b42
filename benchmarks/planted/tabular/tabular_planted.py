"""The transformer over columns with one thing done as one should not."""

import tabular
import tensorflow as tf
from tabular import KINDS, MANY, make_step, make_train


def by_product(tables, kinds):
    """One-hot rows, times the table of a column."""
    return tf.stack([tf.one_hot(kinds[:, i], MANY) @ tables[i] for i in range(KINDS)], axis=1)


def one_hot():
    return make_step(by_product, MANY)


def update_outside():
    """Gradients come from a tf.function; the weights are updated one by one outside of it."""
    return make_train(inside=False)


def retraced():
    """The number of the step is a float of Python, so that the schedule is traced for each."""
    return make_train(number=lambda step: step)


# Not comparable


def more_columns():
    tabular.NUMBERS += 8
    tabular.COLUMNS += 8
    return make_step()
