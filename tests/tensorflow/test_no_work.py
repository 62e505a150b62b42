"""A step in TensorFlow that only hands on what it got says so."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("google.protobuf")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    importlib.import_module("roofline.tensorflow.framework")

from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.recording.backend import load
from roofline.recording.recording import Plan
from roofline.recording.step_recorder import NO_WORK


@pytest.mark.parametrize(
    "function", [lambda x: tf.reshape(x, (6, 4)), lambda x: tf.range(24)], ids=["a view", "a constant"]
)
def test_a_step_without_work_is_no_step_without_a_graph(function: Callable[[Any], Any]) -> None:
    step = tf.function(function, autograph=False)
    x = tf.ones((4, 6))
    assert refusal(lambda: step(x)) == NO_WORK


def test_an_op_beside_such_a_function_does_work() -> None:
    """A product that runs op by op, next to a function that hands on what it got."""
    step = tf.function(lambda x: tf.reshape(x, (6, 4)), autograph=False)
    x, square = tf.ones((4, 6)), tf.ones((8, 8))
    said = refusal(lambda: (tf.matmul(square, square), step(x)))
    assert said.startswith("The step runs TensorFlow op by op (MatMul)")


def refusal(run: Callable[[], Any]) -> str:
    """Return why a step is not counted."""
    plan = Plan(device="cpu", threads=1, count_only=True)
    with pytest.raises(MeasurementError) as error:
        load("tensorflow").recorder.record(Step(run=run), plan, lambda text: None)
    return str(error.value)
