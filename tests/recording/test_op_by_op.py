"""Steps whose ops run one by one, and functions that show no graph: what is said of them, and what is known."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    importlib.import_module("roofline.tensorflow.framework")
    graphs = importlib.import_module("roofline.tensorflow.graphs")

from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.keras import eager
from roofline.recording.recording import Plan, Recording
from roofline.recording.xspace import recorder
from roofline.tensorflow.recorder import TensorFlowRecorder
from roofline.xla import jax as xla_jax
from roofline.xla.recorder import JaxRecorder


def counted(run: Callable[[], object], framework: Any) -> Recording:
    plan = Plan(device="cpu", threads=1, count_only=True)
    return recorder.record(Step(run=run), plan, lambda text: None, framework)


def native_jax() -> Any:
    return JaxRecorder().framework(Step(run=lambda: None))


def native_tensorflow() -> Any:
    return TensorFlowRecorder().framework(Step(run=lambda: None))


def test_a_function_whose_graph_is_not_shown_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow calls it `__inference_<lambda>_21`."""
    x = tf.eye(64)
    function = tf.function(lambda: x @ x, autograph=False)
    framework = native_tensorflow()
    shown = tf.compat.v1.RunMetadata()  # without a graph
    monkeypatch.setattr(graphs, "_metadata", lambda run: (run(), shown)[1])
    with pytest.raises(MeasurementError, match=r"ops of <lambda> are not known\. TensorFlow showed no graph of them"):
        counted(function, framework)


def test_run_eagerly_is_named_only_where_a_model_of_keras_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow imports Keras by itself, so that Keras being there says nothing."""
    x = tf.eye(64)
    for asked, told in ((False, ": put it into a tf.function."), (True, ": leave out run_eagerly, or put it into")):
        monkeypatch.setattr(eager, "runs_eagerly", lambda asked=asked: asked)
        with pytest.raises(MeasurementError, match=r"op by op \(MatMul\)") as refused:
            counted(lambda: x @ x, native_tensorflow())
        assert told in str(refused.value)


def updated_by(apply_updates: Callable[[Any, Any], Any], jitted: bool) -> Recording:
    """A step that makes a gradient and applies it, op by op or with the gradient's program compiled before."""

    def loss(w: Any, x: Any) -> Any:
        return (x @ w).sum()

    state, x = [jnp.eye(64)], jnp.ones((32, 64))

    def train(w: Any, x: Any) -> Any:
        return apply_updates(w, -0.1 * jax.grad(loss)(w, x))

    step = jax.jit(train) if jitted else train

    def run() -> Any:
        state[0] = step(state[0], x)
        return state[0]

    return counted(run, native_jax())


def test_a_step_that_applies_an_optimizer_op_by_op_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its programs of one op each do not say what is of the backward pass."""
    library = ModuleType("updating")
    library.apply_updates = lambda w, change: w + change  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "updating", library)
    monkeypatch.setattr(xla_jax, "_UPDATES", (("updating", "apply_updates"), ("not.imported", "Optimizer.apply")))
    found = updated_by(lambda w, change: library.apply_updates(w, change), jitted=False)
    assert (found.mode, "trains" in found.flags, "phases-unresolved" in found.flags) == ("train", True, True)
    found = updated_by(lambda w, change: w + change, jitted=False)  # nobody says what this is
    assert (found.mode, "trains" in found.flags, "phases-unresolved" in found.flags) == ("infer", False, False)
    found = updated_by(lambda w, change: library.apply_updates(w, change), jitted=True)  # the program itself says it
    assert (found.mode, "trains" in found.flags, "phases-unresolved" in found.flags) == ("train", True, False)
