"""Recurrent layers of Keras on PyTorch, which run their first step twice; in a process of its own."""

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
from roofline.recording.recording import Plan

def work(layer):
    model = keras.Sequential([keras.Input((5, 3)), layer])
    x = numpy.ones((2, 5, 3), "float32")
    step = Step(run=lambda: model.predict_on_batch(x))
    recording = BACKEND.recorder.record(step, Plan(device="cpu", threads=1, count_only=True), lambda text: None)
    costs = [recording.signatures[op.signature].cost for op in recording.ops]
    return sum(cost.model_flops for cost in costs), sum(cost.flops for cost in costs)

layers = keras.layers
stacked = layers.RNN([layers.SimpleRNNCell(4), layers.SimpleRNNCell(3)])
print(json.dumps([work(layers.SimpleRNN(4)), work(layers.SimpleRNN(4, unroll=True)), work(stacked)]))
"""


@pytest.mark.skipif(not all(map(find_spec, ("keras", "torch"))), reason="keras or torch is not installed")
def test_the_step_that_tells_a_shape_is_not_asked_for() -> None:
    """Five steps of two sequences, 3 numbers into 4 and 4 into 4; where the loop is unrolled, no sixth one runs.

    Of stacked cells, the second from 4 to 3 numbers, a seventh runs, for masks of dropout.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, "KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    step = 2 * 2 * (3 * 4 + 4 * 4)
    both = step + 2 * 2 * (4 * 3 + 3 * 3)
    alone, unrolled, stacked = json.loads(done.stdout.splitlines()[-1])
    assert (alone, unrolled, stacked) == ([5 * step, 6 * step], [5 * step, 5 * step], [5 * both, 7 * both])
