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


def sequence(x, kernel):
    return tf.nn.conv1d(tf.pad(x, ((0, 0), (1, 1), (0, 0))), kernel, 1, "VALID")


def groups(x, kernel):
    parts = zip(tf.split(tf.pad(x, AROUND), 2, -1), tf.split(kernel, 2, -1), strict=True)
    return tf.concat([tf.nn.conv2d(a, b, 1, "VALID") for a, b in parts], -1)


def every_second(x, kernel):
    return tf.nn.conv2d(tf.pad(x, AROUND)[:, ::2, ::2], kernel, 1, "VALID")


def cut(x, kernel):
    whole = tf.nn.conv2d_transpose(x, kernel, (2, 8, 8, 5), 1, "VALID")
    return tf.slice(whole, (0, 1, 1, 0), (-1, 6, 6, -1))


def cut_sequence(x, kernel):
    whole = tf.nn.conv1d_transpose(x, kernel, (2, 8, 5), 1, "VALID")
    return tf.slice(whole, (0, 1, 0), (-1, 6, -1))


def cut_by_index(x, kernel):
    return tf.nn.conv1d_transpose(x, kernel, (2, 8, 5), 1, "VALID")[:, 1:-1]


def middle_of_same(x, kernel):
    return tf.nn.conv1d_transpose(x, kernel, (2, 6, 5), 1, "SAME")[:, 3:5]


def most_of_strided(x, kernel):
    return tf.nn.conv1d_transpose(x, kernel, (2, 13, 5), 2, "VALID")[:, :10]


def edges_of_strided(x, kernel):
    return tf.nn.conv1d_transpose(x, kernel, (2, 14, 5), 2, "VALID")[:, 2:-3]


def results(x, kernel):
    return tf.nn.conv1d(x, kernel, 1, "SAME")[:, 1:-1]


def results_behind_a_bias(x, kernel):
    return tf.nn.bias_add(tf.nn.conv1d(x, kernel, 1, "SAME"), data(5))[:, 1:-1]


def results_behind_a_sum_of_channels(x, kernel):
    return (data(1, 1, 5) + tf.nn.conv1d(x, kernel, 1, "SAME"))[:, 1:-1]


def results_behind_a_sum(x, kernel):
    return (tf.nn.conv1d(x, kernel, 1, "SAME") + data(10, 5))[:, 1:-1]


def strided_results(x, kernel):
    return tf.nn.conv1d(x, kernel, 2, "SAME")[:, 1:-1]


def causal(x, kernel):
    return tf.nn.conv2d(x[:, :, None], kernel[:, None], 1, ((0, 0), (4, 4), (0, 0), (0, 0)))[:, :-4]


def padded_causal(x, kernel):
    return tf.nn.conv1d(tf.pad(x, ((0, 0), (2, 2), (0, 0))), kernel, 1, "VALID")[:, :-2]


def depthwise(x, kernel):
    return tf.slice(tf.nn.depthwise_conv2d(x, kernel, (1, 1, 1, 1), "SAME"), (0, 1, 1, 0), (-1, 4, 4, -1))


def depthwise_sequence(x, kernel):
    padded = tf.pad(x, ((0, 0), (1, 1), (0, 0)))[:, None]
    return tf.nn.depthwise_conv2d(padded, kernel, (1, 1, 1, 1), "VALID")[:, 0]


def middle_of_depthwise_sequence(x, kernel):
    return tf.nn.depthwise_conv2d(x[:, None], kernel, (1, 1, 1, 1), "SAME")[:, 0][:, 1:-1]


def turned(x, kernel):
    return tf.nn.conv1d(tf.pad(x, ((0, 0), (0, 2), (0, 0)))[:, ::-1], kernel, 3, "VALID")


def more_than_padding(x, kernel):
    return tf.nn.conv1d(x, kernel, 1, "SAME")[:, 2:-1]


HANDED_ON = {
    "sequence": (sequence, (2, 6, 3), (3, 3, 5), CHANNELS * 16),
    # Two groups of 2 channels to 3.
    "groups": (groups, (2, 6, 6, 4), (3, 3, 2, 6), 2 * 2 * 4 * 3 * 16**2),
    # 8 places with the zeros, of which 0, 2, 4 and 6 are taken, the first of them a zero: 3 meet the one tap.
    "every second": (every_second, (2, 6, 6, 3), (1, 1, 3, 5), CHANNELS * 3**2),
    # 6 places of 3 taps each, of which one is cut off at either end.
    "transposed": (cut, (2, 6, 6, 3), (3, 3, 5, 3), CHANNELS * 16**2),
    "transposed sequence": (cut_sequence, (2, 6, 3), (3, 5, 3), CHANNELS * 16),
    "transposed, by index": (cut_by_index, (2, 6, 3), (3, 5, 3), CHANNELS * 16),
    # Padding has taken 2 of the 4 zeros off at either end: 6 results of 3, 4, 5, 5, 4 and 3 taps. The last one is not
    # asked for; before it 3 are cut off, which are more than there are for the zeros.
    "transposed, same": (middle_of_same, (2, 6, 3), (5, 5, 3), CHANNELS * (24 - 3)),
    # 13 results of 6 places, 2 apart, of 3 taps each: 2 at either end are there for the zeros, and 3 are cut off.
    "transposed, most": (most_of_strided, (2, 6, 3), (3, 5, 3), CHANNELS * 18),
    # One result more than places lead to: of 1, 1, 2, 1, ... 2, 1, 1 and 0 taps 2 and 3 at the ends are cut off.
    "transposed, 2 apart": (edges_of_strided, (2, 6, 3), (3, 5, 3), CHANNELS * (18 - 2 - 2)),
    # 10 places of 3 taps, of which those at either end lack one and are cut off.
    "results": (results, (2, 10, 3), (3, 3, 5), CHANNELS * 3 * 8),
    "results, bias": (results_behind_a_bias, (2, 10, 3), (3, 3, 5), CHANNELS * 3 * 8),
    "results, one number per channel": (results_behind_a_sum_of_channels, (2, 10, 3), (3, 3, 5), CHANNELS * 3 * 8),
    # 3 results of 5 taps, 2 apart: what is left is the one in the middle, all of whose taps are inside.
    "results 2 apart": (strided_results, (2, 5, 3), (5, 3, 5), CHANNELS * 5),
    # Of the 5 taps of 10 places, all of which look back, 10, 9, 8, 7 and 6 are inside.
    "causal": (causal, (2, 10, 3), (5, 3, 5), CHANNELS * (10 + 9 + 8 + 7 + 6)),
    "padded, causal": (padded_causal, (2, 6, 3), (3, 3, 5), CHANNELS * (6 + 5 + 4)),
    # 3 channels, each by itself; of 6 x 6 places the inner 4 x 4, of 3 x 3 taps.
    "depthwise": (depthwise, (2, 6, 6, 3), (3, 3, 3, 1), 2 * 2 * 3 * (4 * 3) ** 2),
    # Likewise of a sequence as of an image of one row: 6 places of 3 taps, two of which are outside.
    "depthwise sequence": (depthwise_sequence, (2, 6, 3), (1, 3, 3, 1), 2 * 2 * 3 * 16),
    "depthwise, cut": (middle_of_depthwise_sequence, (2, 6, 3), (1, 3, 3, 1), 2 * 2 * 3 * 4 * 3),
    # Where the places are turned around nobody looks: 8, two of which are zeros, in 2 windows of 3 taps, 3 apart.
    "turned": (turned, (2, 6, 3), (3, 3, 5), CHANNELS * 2 * 3),
    # 2 are cut off before, though padding added only one, which are asked for: 2 + 3 * 4 taps. The one behind is not.
    "more than padding": (more_than_padding, (2, 6, 3), (3, 3, 5), CHANNELS * (2 + 3 * 4)),
}


@pytest.mark.parametrize(("function", "shape", "kernel", "flops"), HANDED_ON.values(), ids=HANDED_ON)
def test_zeros_are_followed_to_the_convolution_and_from_it(function, shape, kernel, flops, tmp_path: Path) -> None:
    image, weight = data(*shape), variable(*kernel)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.square(function(tf.square(image), weight)))
        return tape.gradient(loss, [image, weight])

    found = record(step, tmp_path)
    assert found.model_flops("forward") == flops
    assert found.model_flops("backward") == 2 * flops


def test_a_part_of_a_transposed_result_is_asked_for_as_the_whole(tmp_path: Path) -> None:
    """Of 8 places 4 are taken, though only the outermost 2 at either end lack a tap: more than padding is cut off."""
    image, kernel = data(2, 6, 3), variable(3, 5, 3)

    @tf.function
    def step():
        return tf.slice(tf.nn.conv1d_transpose(tf.square(image), kernel, (2, 8, 5), 1, "VALID"), (0, 0, 0), (-1, 4, -1))

    assert record(step, tmp_path).model_flops("forward") == CHANNELS * 18


def test_a_long_chain_before_and_behind_a_convolution_is_not_followed_without_end(tmp_path: Path) -> None:
    """Nothing is known of its ends, so all 18 pairs of the 8 places are asked for; of a shorter chain 16 are."""
    image, kernel = data(2, 6, 3), variable(3, 3, 5)

    def around(x):
        for _ in range(15):  # 30 nodes
            x = tf.expand_dims(tf.squeeze(x, 0), 0)
        return x

    @tf.function
    def step():
        padded = around(tf.pad(image, ((0, 0), (1, 1), (0, 0)))[None])
        whole = tf.nn.conv1d(tf.squeeze(padded, 0), kernel, 1, "VALID")
        up = tf.nn.conv1d_transpose(tf.square(whole), kernel, (2, 8, 3), 1, "VALID")
        return tf.square(around(up[None])[:, :, 1:7])

    assert record(step, tmp_path).model_flops("forward") == 2 * CHANNELS * 18


@pytest.mark.parametrize("outer", ["", "model/"])
def test_who_reads_the_whole_in_a_scope_called_gradients_is_no_gradient(outer: str, tmp_path: Path) -> None:
    image, kernel = data(2, 6, 3), variable(3, 5, 3)

    @tf.function
    def step():
        whole = tf.nn.conv1d_transpose(tf.square(image), kernel, (2, 8, 5), 1, "VALID")
        with tf.name_scope(f"{outer}gradients"):
            read = tf.square(whole)
        return tf.slice(whole, (0, 1, 0), (-1, 6, -1)), read

    assert record(step, tmp_path).model_flops("forward") == CHANNELS * 18


def test_symbolic_gradients_of_what_is_cut_off_are_not_asked_for(tmp_path: Path) -> None:
    image, kernel = data(2, 6, 3), variable(3, 5, 3)

    @tf.function
    def step():
        with tf.name_scope("model"):
            loss = tf.reduce_sum(tf.square(cut_sequence(tf.square(image), kernel)))
            return tf.gradients(loss, [image, kernel])

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (CHANNELS * 16, 2 * CHANNELS * 16)


def test_results_that_somebody_reads_are_asked_for(tmp_path: Path) -> None:
    """6 places of 3 taps, two of which are outside: one cuts what padding added off, and the other takes it."""
    image, kernel = data(2, 6, 3), variable(3, 3, 5)

    @tf.function
    def step():
        whole = tf.nn.conv1d(tf.square(image), kernel, 1, "SAME")
        return tf.square(whole[:, 1:-1]), tf.square(whole)

    assert record(step, tmp_path).model_flops("forward") == CHANNELS * 16


def test_results_to_which_an_array_is_added_are_asked_for(tmp_path: Path) -> None:
    """10 places of 3 taps, two of which are outside."""
    image, kernel = data(2, 10, 3), variable(3, 3, 5)
    step = tf.function(lambda: tf.square(results_behind_a_sum(tf.square(image), kernel)))
    assert record(step, tmp_path).model_flops("forward") == CHANNELS * 28


def test_zeros_that_a_convolution_of_onednn_took_in_are_in_its_shape(tmp_path: Path) -> None:
    """5 x 4 x 3 places and 3 x 2 x 2 taps, 2 zeros on either side of the 5: each tap on each of the 5 places.

    Where TensorFlow leaves oneDNN out, as it did on a CPU without AVX-512, the padding is an op: 7 results of 3 taps.
    """
    image, kernel = data(2, 5, 4, 3, 3), variable(3, 2, 2, 3, 5)

    @tf.function
    def step():
        padded = tf.pad(image, ((0, 0), (2, 2), (0, 0), (0, 0), (0, 0)))
        return tf.square(tf.nn.conv3d(padded, kernel, (1, 1, 1, 1, 1), "VALID"))

    found = record(step, tmp_path)
    is_op = any(node.op == "Pad" for node in found.graphs.functions[0].after)
    assert found.model_flops("forward") == CHANNELS * (5 * 3) * (3 * 2) * (2 * 2)
    assert found.flops("forward") == CHANNELS * ((7 if is_op else 5) * 3) * (3 * 2) * (2 * 2)


@pytest.mark.parametrize("case", ["results", "depthwise, cut"])
def test_gradients_without_a_forward_pass_ask_for_no_more(case: str, tmp_path: Path) -> None:
    """A sum needs no convolution, which would tell what is cut off: the gradient of the slice has zeros there."""
    function, shape, taps, flops = HANDED_ON[case]
    image, kernel = data(*shape), variable(*taps)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(function(image, kernel))
        return tape.gradient(loss, [image, kernel])

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (0, 2 * flops)


#: What is padded, and the FLOPs asked for in the gradient of its image, as in the forward pass.
FROZEN = {case: HANDED_ON[case] for case in ("sequence", "groups", "every second", "depthwise sequence")}


@pytest.mark.parametrize(("function", "shape", "kernel", "flops"), FROZEN.values(), ids=FROZEN)
def test_only_the_gradient_of_a_padded_image_is_left(function, shape, kernel, flops, tmp_path: Path) -> None:
    """A frozen kernel at the end of a recomputed function: what padding added, the gradient of the image cuts off."""
    image, weight = data(*shape), tf.Variable(data(*kernel), trainable=False)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.square(tf.recompute_grad(lambda x: function(x, weight))(tf.square(image))))
        return loss, tape.gradient(loss, image)

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (flops, flops)


def test_a_part_that_is_taken_of_a_gradient_is_no_padding(tmp_path: Path) -> None:
    """Of 8 places, which 6 results of 3 taps lead to, 6 are taken behind the gradient: all pairs are asked for."""
    image, kernel = data(2, 8, 3), data(3, 3, 5)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.nn.conv1d(image, kernel, 1, "VALID"))
        return tf.slice(tape.gradient(loss, image), (0, 1, 0), (-1, 6, -1))

    assert record(step, tmp_path).model_flops("backward") == CHANNELS * 18
