"""Products with a one-hot matrix in TensorFlow's graph mode: they run, and stand for rows picked by their index.

12 indices of 11 rows of 4: one product of 2 * 12 * 11 * 4 = 1,056 FLOP forward, and one for the gradient of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))
from test_graph import data, record, tf, variable

from roofline.core.cost import BY_INDEX

PRODUCT = 2 * 12 * 11 * 4


def rows(make: Callable[[Any], Any], folder: Path) -> tuple[Any, set[str]]:
    """What `make` gives of (2, 6) indices, times a table of (11, 4), and the gradient; the notes of the products."""
    table, indices = variable(11, 4), tf.constant([[1, 10, 3, 0, 3, 7], [2, 2, 9, 4, 5, 6]])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.einsum("bsv,vh->bsh", make(indices), table)))
        return tape.gradient(loss, table)

    found = record(step, folder)
    return found, {op.costed.cost.note for op in found.counted.ops if op.costed.cost.flops}


@pytest.mark.parametrize(
    "make",
    [
        lambda indices: tf.one_hot(indices, 11),
        lambda indices: tf.cast(tf.one_hot(indices, 11, dtype=tf.int32), tf.float32),
        lambda indices: tf.transpose(tf.one_hot(indices, 11, axis=1), (0, 2, 1)),
    ],
    ids=["floats", "cast", "turned"],
)
def test_rows_picked_by_a_product_are_not_asked_for(make: Callable[[Any], Any], tmp_path: Path) -> None:
    found, notes = rows(make, tmp_path)
    assert (found.flops("forward"), found.flops("backward")) == (PRODUCT, PRODUCT)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (0, 0)
    assert notes == {BY_INDEX}


def test_what_is_scaled_is_a_product(tmp_path: Path) -> None:
    found, notes = rows(lambda indices: tf.one_hot(indices, 11, on_value=0.5), tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (PRODUCT, PRODUCT)
    assert notes == {""}


def test_any_other_factor_is_a_product(tmp_path: Path) -> None:
    found, _ = rows(lambda indices: tf.nn.softmax(data(2, 6, 11)), tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (PRODUCT, PRODUCT)


@pytest.mark.parametrize("channels", [3, 256])
def test_patches_that_a_convolution_picks_are_not_asked_for(channels: int, tmp_path: Path) -> None:
    """All 4 places and channels of 2 x 2 patches, by an identity whose diagonal is a constant or, if long, filled."""
    image, numbers = variable(2, 3, 2, channels), 4 * channels

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            kernel = tf.reshape(tf.eye(numbers), (2, 2, channels, numbers))
            loss = tf.reduce_sum(tf.tanh(tf.nn.conv2d(image, kernel, 1, "VALID")))
        return tape.gradient(loss, image)

    costs = [op.costed.cost for op in record(step, tmp_path).counted.ops if op.costed.cost.flops]
    assert [(cost.model_flops, cost.flops, cost.note) for cost in costs] == [(0, 2 * 2 * 2 * numbers**2, BY_INDEX)] * 2
