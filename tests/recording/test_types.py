"""The types of ops with mixed inputs, as each framework runs them: that of most bytes of what is written."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
import jax.numpy as jnp

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    importlib.import_module("roofline.tensorflow.framework")

from roofline.backends.torch import BACKEND as TORCH
from roofline.core.schema import Signature
from roofline.core.step import Step
from roofline.recording.recording import Plan, Recording
from roofline.recording.xspace import recorder
from roofline.tensorflow.recorder import TensorFlowRecorder
from roofline.xla.recorder import JaxRecorder

COUNT = Plan(device="cpu", threads=1, count_only=True)


def of_torch(run: Callable[[], object]) -> Recording:
    return TORCH.recorder.record(Step(run=run), COUNT, lambda text: None)


def of_jax(run: Callable[[], object]) -> Recording:
    return recorder.record(Step(run=run), COUNT, lambda text: None, JaxRecorder().framework(Step(run=run)))


def of_tensorflow(run: Callable[[], object]) -> Recording:
    return recorder.record(Step(run=run), COUNT, lambda text: None, TensorFlowRecorder().framework(Step(run=run)))


def signature(recording: Recording) -> Signature:
    """That of the only op."""
    (op,) = recording.ops
    return recording.signatures[op.signature]


def types(recording: Recording) -> tuple[str | None, str | None]:
    """(type of what its only op writes, type that it computes in)."""
    found = signature(recording)
    return found.dtype, found.computes_in


def test_pytorch() -> None:
    """A maximum of each of 64 rows writes 64 x 4 bytes of fp32, and 64 x 8 bytes of where they stand."""
    single, double = torch.ones(64, 64), torch.ones(64, 64, dtype=torch.float64)
    number = torch.tensor(2.0, dtype=torch.float64)
    assert types(of_torch(lambda: torch.mul(single, double))) == ("fp64", "fp64")
    assert types(of_torch(lambda: torch.mul(double, single))) == ("fp64", "fp64")
    assert types(of_torch(lambda: torch.mul(single, number))) == ("fp32", "fp32")
    assert types(of_torch(lambda: single.double())) == ("fp64", "fp64")
    assert types(of_torch(lambda: double.float())) == ("fp32", "fp32")
    assert types(of_torch(lambda: single > double)) == ("bool", "fp64")
    assert types(of_torch(lambda: single.max(1))) == ("int64", "fp32")
    assert types(of_torch(lambda: single.add_(1.0))) == ("fp32", "fp32")
    assert signature(of_torch(lambda: single + single)).arithmetic is None, "it is not written twice"


def test_jax() -> None:
    """Mixed inputs, which XLA casts inside of one kernel, casts in both directions, and a comparison."""
    half, single = jnp.ones((64, 64), jnp.bfloat16), jnp.ones((64, 64))
    mixed, down, up, more = (
        jax.jit(function)
        for function in (
            lambda a, b: a * b,
            lambda a: a.astype(jnp.bfloat16),
            lambda a: a.astype(jnp.float32),
            lambda a: a > 0.5,
        )
    )
    assert types(of_jax(lambda: mixed(half, single))) == ("fp32", "fp32")
    assert types(of_jax(lambda: down(single)))[0] == "bf16"
    assert types(of_jax(lambda: up(half)))[0] == "fp32"
    assert types(of_jax(lambda: more(single))) == ("bool", "fp32")


def test_tensorflow() -> None:
    single = tf.ones((64, 64))

    def graph(function: Callable[[Any], Any]) -> Callable[[], Any]:
        compiled = tf.function(function, autograph=False)
        return lambda: compiled(single)

    assert types(of_tensorflow(graph(lambda a: tf.cast(a, tf.float64)))) == ("fp64", "fp64")
    assert types(of_tensorflow(graph(lambda a: tf.cast(a, tf.bfloat16)))) == ("bf16", "bf16")
    assert types(of_tensorflow(graph(lambda a: a > 0.5))) == ("bool", "fp32")
    assert types(of_tensorflow(graph(lambda a: a * a))) == ("fp32", "fp32")
