"""Dilated convolutions that TensorFlow writes as convolutions without holes, of an image that it cuts into pieces.

Images of 7 x 9, kernels of 3 x 3, dilation 2. Valid: 3 x 5 outputs of 9 taps, all inside. SAME: in either direction of
n outputs the middle tap meets n elements and each of the others n - 2, (3 x 7 - 4) x (3 x 9 - 4) pairs in all.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from test_graph import data, record, tf, variable

PAIRS = {"VALID": 3 * 5 * 9, "SAME": 17 * 23}


@pytest.mark.parametrize("padding", PAIRS)
def test_a_depthwise_convolution_asks_for_what_is_inside_the_image(tmp_path: Path, padding: str) -> None:
    image, kernel = data(2, 7, 9, 3), variable(3, 3, 3, 4)
    asked = 2 * 2 * 3 * 4 * PAIRS[padding]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            made = tf.nn.depthwise_conv2d(tf.square(image), kernel, (1, 1, 1, 1), padding, dilations=(2, 2))
            loss = tf.reduce_sum(tf.square(made))
        return tape.gradient(loss, [image, kernel])

    found = record(step, tmp_path)
    assert found.model_flops("forward") == asked
    assert found.model_flops("backward") == 2 * asked
    assert found.flops("forward") > asked


def test_results_of_padding_that_are_cut_off_are_not_asked_for(tmp_path: Path) -> None:
    """Of 7 results of 3 taps, 3 apart, padding added the last 3, which are cut off.

    Of the 4 that are left the middle tap and the one behind it meet an element each, the one before only the last.
    """
    image, kernel = data(2, 7, 8), variable(3, 8, 1)
    bias = variable(8)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            whole = tf.nn.depthwise_conv2d(
                tf.square(image)[:, None], kernel[None], (1, 1, 1, 1), "SAME", dilations=(1, 3)
            )
            loss = tf.reduce_sum(tf.square(tf.nn.bias_add(whole[:, 0], bias)[:, :4]))
        return tape.gradient(loss, [image, kernel, bias])

    found = record(step, tmp_path)
    assert found.model_flops("forward") == 2 * 2 * 8 * (1 + 4 + 4)
    assert found.model_flops("backward") == 2 * found.model_flops("forward")


def test_a_separable_convolution_and_one_direction(tmp_path: Path) -> None:
    image, kernel, mixing = data(2, 7, 9, 3), variable(3, 3, 3, 1), variable(1, 1, 3, 5)

    @tf.function
    def step():
        return tf.nn.separable_conv2d(tf.square(image), kernel, mixing, (1, 1, 1, 1), "SAME", dilations=(1, 2))

    # Of the taps of 7 rows, of which the outer ones are a row apart, 3 x 7 - 2 are inside; then 5 of 3 channels mixed.
    assert record(step, tmp_path).model_flops("forward") == 2 * 2 * 3 * 19 * 23 + 2 * 2 * 63 * 3 * 5


def test_of_strides_within_pieces_all_that_runs_is_asked_for(tmp_path: Path) -> None:
    """`depthwise_conv2d` takes a stride beside a dilation, against its description: no such convolution."""
    image, kernel = data(2, 7, 9, 3), variable(3, 3, 3, 4)

    @tf.function
    def step():
        return tf.square(tf.nn.depthwise_conv2d(image, kernel, (1, 2, 2, 1), "SAME", dilations=(2, 2)))

    with pytest.warns(UserWarning, match="strides must be 1"):
        found = record(step, tmp_path)
    assert found.model_flops("forward") == found.flops("forward") > 0


def test_gradients_of_a_convolution_whose_result_nobody_needs(tmp_path: Path) -> None:
    """At the end of a recomputed function, where the backward pass has no convolution beside its gradients."""
    image, kernel = data(2, 7, 9, 3), variable(3, 3, 3, 4)
    asked = 2 * 2 * 3 * 4 * PAIRS["SAME"]

    def block(x):
        return tf.nn.depthwise_conv2d(tf.square(x), kernel, (1, 1, 1, 1), "SAME", dilations=(2, 2))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.square(tf.recompute_grad(block)(tf.square(image))))
        return loss, tape.gradient(loss, [image, kernel])

    found = record(step, tmp_path)
    assert found.model_flops("forward") == asked
    assert found.model_flops("backward") == 2 * asked


def test_the_gradient_of_a_padded_image_alone_asks_for_what_is_inside(tmp_path: Path) -> None:
    """A frozen kernel in a recomputed function, and two zeros on either side, as SAME has them, by another node."""
    image, kernel = data(2, 7, 9, 3), tf.Variable(data(3, 3, 3, 4), trainable=False)
    asked = 2 * 2 * 3 * 4 * PAIRS["SAME"]

    def block(x):
        padded = tf.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0)))
        return tf.nn.depthwise_conv2d(padded, kernel, (1, 1, 1, 1), "VALID", dilations=(2, 2))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.square(tf.recompute_grad(block)(tf.square(image))))
        return loss, tape.gradient(loss, image)

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (asked, asked)
