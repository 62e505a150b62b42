"""Keras on PyTorch: whose memory a step holds, and recurrent layers, whose first step runs twice.

Keras's engine is chosen when it is imported, so one process of its own answers for all tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

#: Without what Keras imports where it is installed, and needs for none of this; at its end it tidies nothing up.
ASKED = """
import gc, json, os, sys
gc.disable()
sys.modules.update(dict.fromkeys(("jax", "matplotlib", "pandas", "tensorflow")))
import keras, numpy
from roofline.backends.keras_torch import BACKEND
from roofline.core.step import Step
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.recording.recording import Plan

layers = keras.layers

def recorded(run, model=None):
    step = Step(run=run, model=model)
    return BACKEND.recorder.record(step, Plan(device="cpu", threads=1, count_only=True), lambda text: None)

def held(run, model):
    run()
    recording = recorded(run, model)
    columns = recording.storages
    begin = dict.fromkeys(STORAGE_KINDS, 0)
    for kind, size, first in zip(columns.kind, columns.bytes, columns.first, strict=True):
        begin[STORAGE_KINDS[kind]] += size if first == 0 else 0
    sums = recording.memory
    return {**begin, "sums": [sums.parameters, sums.gradients, sums.optimizer]}

def made():
    parts = [layers.Dense(64), layers.BatchNormalization(), layers.Dense(10)]
    return keras.Sequential([keras.Input((256,)), *parts])

def work(layer):
    model = keras.Sequential([keras.Input((5, 3)), layer])
    x = numpy.ones((2, 5, 3), "float32")
    recording = recorded(lambda: model.predict_on_batch(x))
    costs = [recording.signatures[op.signature].cost for op in recording.ops]
    return sum(cost.model_flops for cost in costs), sum(cost.flops for cost in costs)

x, y = (keras.ops.convert_to_tensor(numpy.ones((32, size), "float32")) for size in (256, 10))
memory = {}
for name in ("Adam", "SGD"):
    model = made()
    model.compile(optimizer=getattr(keras.optimizers, name)(), loss="mse")
    memory[name] = held(lambda: model.train_on_batch(x, y), model)
other = made()
memory["infer"] = held(lambda: other.predict_on_batch(x), other)

stacked = layers.RNN([layers.SimpleRNNCell(4), layers.SimpleRNNCell(3)])
recurrent = [work(layers.SimpleRNN(4)), work(layers.SimpleRNN(4, unroll=True)), work(stacked)]
print(json.dumps({"memory": memory, "recurrent": recurrent}), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def answers() -> Any:
    if missing := [name for name in ("keras", "torch") if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, "KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_state_of_an_optimizer_is_no_parameter_and_no_input(answers: Any) -> None:
    held = answers["memory"]
    # Two dense layers, scale and shift; the mean and the variance do not learn.
    learn = 4 * (256 * 64 + 64 + 2 * 64 + 64 * 10 + 10)
    weights = learn + 4 * 2 * 64
    # Adam has two moments of each; both have the number of steps and the learning rate.
    assert (held["Adam"]["optimizer"], held["SGD"]["optimizer"]) == (2 * learn + 8, 8)
    assert [held[name]["parameters"] for name in ("Adam", "SGD")] == [weights + 8] * 2  # and two of the mean loss
    assert [held[name]["gradients"] for name in ("Adam", "SGD")] == [learn] * 2
    assert [held[name]["inputs"] for name in ("Adam", "SGD")] == [4 * 32 * (256 + 10)] * 2
    assert held["Adam"]["sums"] == [weights, learn, 2 * learn + 8]
    assert held["SGD"]["sums"] == [weights, learn, 8]
    assert held["infer"]["sums"] == [weights, None, None]
    assert held["infer"]["parameters"] == weights
    assert (held["infer"]["gradients"], held["infer"]["optimizer"]) == (0, 0)
    assert held["infer"]["inputs"] == 4 * 32 * 256


def test_the_step_that_tells_a_shape_is_not_asked_for(answers: Any) -> None:
    """Five steps of two sequences, 3 numbers into 4 and 4 into 4; where the loop is unrolled, no sixth one runs.

    Of stacked cells, the second from 4 to 3 numbers, a seventh runs, for masks of dropout.
    """
    step = 2 * 2 * (3 * 4 + 4 * 4)
    both = step + 2 * 2 * (4 * 3 + 3 * 3)
    alone, unrolled, stacked = answers["recurrent"]
    assert (alone, unrolled, stacked) == ([5 * step, 6 * step], [5 * step, 5 * step], [5 * both, 7 * both])
