"""Products of rows that are filled up with zeros and cut off again, in TensorFlow's graph mode.

30 rows filled up to 32, by a matrix of 14 x 8, whose 14 are filled up to 16 where both factors are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from test_graph import data, record, tf, variable

ROW = 2 * 14 * 8
ROWS = ((0, 2), (0, 0))


@pytest.mark.parametrize("cut", [lambda y: y[:30], lambda y: y[:-2]])
def test_rows_that_are_filled_up_and_cut_off_are_not_asked_for(tmp_path: Path, cut) -> None:
    image, weight = data(30, 14), variable(14, 8)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.square(cut(tf.pad(tf.square(image), ROWS) @ weight)))
        return tape.gradient(loss, [image, weight])

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (30 * ROW, 2 * 30 * ROW)
    assert (found.flops("forward"), found.flops("backward")) == (32 * ROW, 2 * 32 * ROW)


def test_rows_and_columns_that_are_cut_off_behind_a_bias_or_turned(tmp_path: Path) -> None:
    """30 rows filled up to 32 and 8 columns to 11; the gradients are turned back, as their products are."""
    image, weight, bias = data(30, 14), variable(14, 8), variable(11)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            filled = tf.pad(tf.square(image), ROWS) @ tf.pad(weight, ((0, 0), (0, 3)))
            loss = tf.reduce_sum(tf.square(tf.transpose(filled + bias)[:8, :30]))
        return tape.gradient(loss, [image, weight])

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (30 * ROW, 2 * 30 * ROW)
    executed = 32 * 2 * 14 * 11
    assert (found.flops("forward"), found.flops("backward")) == (executed, 2 * executed)


def test_rows_that_a_slice_of_a_length_cuts_off(tmp_path: Path) -> None:
    image, weight = data(30, 14), variable(14, 8)

    @tf.function
    def step():
        return tf.square(tf.slice(tf.pad(tf.square(image), ROWS) @ weight, (0, 0), (30, -1)))

    assert record(step, tmp_path).model_flops("forward") == 30 * ROW


def test_factors_that_are_transposed_and_filled_up_along_what_is_summed(tmp_path: Path) -> None:
    left, right = data(14, 30), variable(8, 14)

    @tf.function
    def step():
        a, b = tf.pad(tf.square(left), ROWS), tf.pad(tf.square(right), ((0, 0), (0, 2)))
        return tf.matmul(a, b, transpose_a=True, transpose_b=True)

    assert record(step, tmp_path).model_flops("forward") == 30 * ROW


@pytest.mark.parametrize("cut", [lambda y: y, lambda y: y[2:], lambda y: y[::2]])
def test_rows_that_somebody_reads_are_asked_for(tmp_path: Path, cut) -> None:
    image, weight = data(30, 14), variable(14, 8)

    @tf.function
    def step():
        return tf.square(cut(tf.pad(tf.square(image), ROWS) @ weight))

    assert record(step, tmp_path).model_flops("forward") == 32 * ROW


def test_a_slice_that_begins_before_its_array_takes_it_from_its_first_row(tmp_path: Path) -> None:
    image, weight = data(30, 14), variable(14, 8)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(image)
            loss = tf.reduce_sum(tf.square((tf.square(image) @ weight)[-100:]))
        return tape.gradient(loss, [image, weight])

    found = record(step, tmp_path)
    assert (found.model_flops("forward"), found.model_flops("backward")) == (30 * ROW, 2 * 30 * ROW)


def test_a_slice_that_begins_before_its_array_cuts_off_what_was_filled_up_behind(tmp_path: Path) -> None:
    image, weight = data(30, 14), variable(14, 8)

    @tf.function
    def step():
        return tf.square((tf.pad(tf.square(image), ROWS) @ weight)[-100:30])

    assert record(step, tmp_path).model_flops("forward") == 30 * ROW


def test_a_slice_that_begins_where_the_program_computes_may_take_any_rows(tmp_path: Path) -> None:
    image, weight, begin = data(30, 14), variable(14, 8), tf.Variable((1, 0))

    @tf.function
    def step():
        return tf.square(tf.slice(tf.pad(tf.square(image), ROWS) @ weight, begin, (30, 8)))

    assert record(step, tmp_path).model_flops("forward") == 32 * ROW
