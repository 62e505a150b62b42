"""Keras that runs op by op: what tells so. Its engine is chosen when it is imported, so in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

#: Without what Keras imports where it is installed, and needs for none of this; at its end it tidies nothing up.
#: A model with `run_eagerly` and one without; and steps of training and of inference, as JAX's recorder sees them.
ASKED = """
import json, os, sys
sys.modules.update(dict.fromkeys(("matplotlib", "pandas", "tensorflow", "torch")))
import keras, numpy
from roofline.keras import eager
from roofline.recording.xspace.called import called
from roofline.xla.jax import _UPDATES

x = numpy.ones((2, 3), "float32")

def made(**how):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", **how)
    return model

def seen(run):
    run()
    with called(_UPDATES) as found:
        run()
    return found

compiled = made(run_eagerly=False)
found = {"without": eager.runs_eagerly()}
model = made(run_eagerly=True)
found["with"] = eager.runs_eagerly()
found["trained"] = seen(lambda: model.train_on_batch(x, x[:, :1]))
found["inferred"] = seen(lambda: model.predict_on_batch(x))
found["compiled"] = seen(lambda: compiled.train_on_batch(x, x[:, :1]))
print(json.dumps(found), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not all(map(find_spec, ("keras", "jax"))), reason="keras or jax is not installed")
def test_a_model_that_runs_eagerly_and_the_optimizer_that_it_applies() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, "KERAS_BACKEND": "jax", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["without"], found["with"]) == (False, True)
    assert (found["trained"], found["inferred"]) == (["keras.optimizers.Optimizer.apply"], [])
    assert found["compiled"] == []  # it was applied when its program was traced, which says so itself
