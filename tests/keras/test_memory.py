"""The memory of a step of Keras on PyTorch, told apart by what Keras says it holds; in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

ASKED = """
import json, keras, numpy
from roofline.backends.keras_torch import BACKEND
from roofline.core.step import Step
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.recording.recording import Plan

def held(run, model):
    run()
    step = Step(run=run, model=model)
    recording = BACKEND.recorder.record(step, Plan(device="cpu", threads=1, count_only=True), lambda text: None)
    columns = recording.storages
    begin = dict.fromkeys(STORAGE_KINDS, 0)
    for kind, size, first in zip(columns.kind, columns.bytes, columns.first, strict=True):
        begin[STORAGE_KINDS[kind]] += size if first == 0 else 0
    sums = recording.memory
    return {**begin, "sums": [sums.parameters, sums.gradients, sums.optimizer]}

def made():
    layers = [keras.layers.Dense(64), keras.layers.BatchNormalization(), keras.layers.Dense(10)]
    return keras.Sequential([keras.Input((256,)), *layers])

x, y = (keras.ops.convert_to_tensor(numpy.ones((32, size), "float32")) for size in (256, 10))
found = {}
for name in ("Adam", "SGD"):
    model = made()
    model.compile(optimizer=getattr(keras.optimizers, name)(), loss="mse")
    found[name] = held(lambda: model.train_on_batch(x, y), model)
other = made()
found["infer"] = held(lambda: other.predict_on_batch(x), other)
print(json.dumps(found))
"""


@pytest.mark.skipif(not all(map(find_spec, ("keras", "torch"))), reason="keras or torch is not installed")
def test_the_state_of_an_optimizer_is_no_parameter_and_no_input() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, "KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    # Two dense layers, scale and shift; the mean and the variance do not learn.
    learn = 4 * (256 * 64 + 64 + 2 * 64 + 64 * 10 + 10)
    weights = learn + 4 * 2 * 64
    # Adam has two moments of each; both have the number of steps and the learning rate.
    assert (found["Adam"]["optimizer"], found["SGD"]["optimizer"]) == (2 * learn + 8, 8)
    assert [found[name]["parameters"] for name in ("Adam", "SGD")] == [weights + 8] * 2  # and two of the mean loss
    assert [found[name]["gradients"] for name in ("Adam", "SGD")] == [learn] * 2
    assert [found[name]["inputs"] for name in ("Adam", "SGD")] == [4 * 32 * (256 + 10)] * 2
    assert found["Adam"]["sums"] == [weights, learn, 2 * learn + 8]
    assert found["SGD"]["sums"] == [weights, learn, 8]
    assert found["infer"]["sums"] == [weights, None, None]
    assert found["infer"]["parameters"] == weights
    assert (found["infer"]["gradients"], found["infer"]["optimizer"]) == (0, 0)
    assert found["infer"]["inputs"] == 4 * 32 * 256
