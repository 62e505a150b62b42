"""What Python returns to a graph has the shape that it had when it ran, and so has all that is made of it."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("google.protobuf")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    callbacks = importlib.import_module("roofline.tensorflow.callbacks")
    graphs = importlib.import_module("roofline.tensorflow.graphs")

from tensorflow.python.ops import script_ops


def outputs(step: Callable[[], Any], op: str) -> set[tuple[tuple[int | None, ...] | None, ...]]:
    """The shapes of what each node of this op returns, in the graphs before and after grappler."""
    (function,) = graphs.collect(tf.function(step)).functions
    graphs_of_it = (function.before, function.after)
    return {tuple(one.shape for one in node.outputs) for graph in graphs_of_it for node in graph if node.op == op}


def test_what_a_graph_makes_of_numpys_result_has_a_shape():
    # The program says the shape (`set_shape`), as a convolution must know its channels: no graph keeps that.
    image, filters = tf.ones((2, 8, 6, 3)), tf.ones((3, 3, 3, 5))

    def step():
        read = tf.numpy_function(lambda x: np.sort(x, 1), [image], tf.float32)
        read.set_shape(image.shape)
        return tf.nn.conv2d(read, filters, 2, "SAME")

    assert outputs(step, "PyFunc") == {((2, 8, 6, 3),)}
    assert outputs(step, "Conv2D") == {((2, 4, 3, 5),)}  # half of 8 x 6


def test_nobody_needs_to_say_the_shape():
    x = tf.ones((4, 6))

    def step():
        low, high = tf.py_function(lambda x: (x[:, :2], x[:, 2:]), [x], (tf.float32, tf.float32))
        return tf.raw_ops.MatMul(a=low, b=high, transpose_a=True)

    assert outputs(step, "EagerPyFunc") == {((4, 2), (4, 4))}
    assert outputs(step, "MatMul") == {((2, 4),)}


def test_a_function_that_is_called_is_told_too():
    x = tf.ones((4, 6))

    def chosen():
        first = tf.numpy_function(lambda x: x[:3], [x], tf.float32)
        return tf.raw_ops.MatMul(a=first, b=x, transpose_b=True)

    def step():
        return tf.cond(tf.reduce_sum(x) > 0, chosen, lambda: tf.zeros((3, 4)))

    assert outputs(step, "MatMul") == {((3, 4),)}  # 3 of x's 4 rows against all of them


def test_a_dimension_that_changes_from_call_to_call_is_unknown():
    x = tf.ones((4, 6))
    rows = iter((1, 2))

    step = tf.function(lambda: tf.numpy_function(lambda x: x[: next(rows)], [x], tf.float32))
    with callbacks.watching() as returned:
        step()
        step()
    ((shape,),) = returned.values()
    assert shape.as_list() == [None, 6]


def test_what_calls_python_is_left_as_it_was_when_the_step_raises():
    call = script_ops.FuncRegistry.__call__
    with pytest.raises(ZeroDivisionError):
        graphs.collect(lambda: 1 / 0)
    assert script_ops.FuncRegistry.__call__ is call
