"""Convolutions of images that a node of its own filled up with zeros, in TensorFlow's graph mode.

Images of 6 x 6, kernels of 3 x 3, a zero on either side: 6 outputs of 3 taps, two of which are outside, in either
direction; of 18^2 pairs 16^2 are asked for, in the forward pass and in both gradients.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from test_graph import data, record, tf, variable

CHANNELS = 2 * 2 * 3 * 5  # FLOPs of a pair: batch 2, 3 channels to 5
AROUND = ((0, 0), (1, 1), (1, 1), (0, 0))


@pytest.mark.parametrize(("value", "pairs"), [(0, 16**2), (1, 18**2)])
def test_zeros_around_an_image_are_not_asked_for(tmp_path: Path, value: int, pairs: int) -> None:
    image, kernel = data(2, 6, 6, 3), variable(3, 3, 3, 5)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            padded = tf.pad(tf.square(image), AROUND, constant_values=value)
            loss = tf.reduce_sum(tf.square(tf.nn.conv2d(padded, kernel, 1, "VALID")))
        return tape.gradient(loss, [image, kernel])

    found = record(step, tmp_path)
    assert found.model_flops("forward") == CHANNELS * pairs
    assert found.model_flops("backward") == 2 * CHANNELS * pairs
    assert found.flops("forward") >= found.model_flops("forward")
