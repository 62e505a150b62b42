"""The memory of functions that XLA compiles for TensorFlow, held against the sums that XLA writes beside its dumps."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))
from test_with_xla import function, ran, tf

_SCRIPT = """
import json, sys
sys.path.append(sys.argv[1])
from test_with_xla import ran, tf

def perceptron(x, weights):
    for weight in weights:
        x = tf.tanh(x @ weight)
    return x

def convolutions(x, weights):
    for weight in weights:
        x = tf.nn.relu(tf.nn.conv2d(x, weight, 1, "SAME"))
    return x

def attention(x, weights):
    query, key, value = (x @ weight for weight in weights)
    return tf.nn.softmax(tf.matmul(query, key, transpose_b=True)) @ value

models = {
    "perceptron": (perceptron, (512, 128), [(128, 128)] * 4),
    "convolutions": (convolutions, (8, 24, 24, 4), [(3, 3, 4, 8), (3, 3, 8, 8)]),
    "attention": (attention, (4, 128, 64), [(64, 64)] * 3),
}
made = {}
for name, (model, shape, sizes) in models.items():
    def gradients(x, *weights, model=model):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = tf.reduce_mean(model(x, weights) ** 2)
        return tape.gradient(loss, weights)
    gradients.__name__ = name
    step = tf.function(gradients, jit_compile=True, autograph=False)
    arguments = [tf.ones(shape), *(0.01 * tf.ones(size) for size in sizes)]
    storages = ran(lambda: step(*arguments)).counted.storages
    made[name] = storages.assigned
print(json.dumps(made))
"""


def test_what_a_function_is_assigned_holds_its_arguments_and_results_and_what_is_between() -> None:
    """Of tanh(x w) w: 512 x 128 numbers of x, of the result and at most twice between them, and 128 x 128 of w."""
    x, w = tf.ones((512, 128)), tf.ones((128, 128))
    compiled = function(lambda: tf.tanh(x @ w) @ w, True)
    held = ran(compiled).counted.storages
    assert held is not None
    rows, weight = 4 * 512 * 128, 4 * 128 * 128
    assert 2 * rows + weight <= held.assigned <= 4 * rows + weight + 4096
    assert (held.source, held.at_least) == ("buffer assignment", False)
    # Of what runs beside it in a graph no memory is known.
    within = ran(function(lambda: (compiled(), tf.sin(x)))).counted.storages
    assert within is not None
    assert (within.assigned, within.at_least) == (held.assigned, True)


@pytest.mark.thorough
def test_the_peak_is_what_xla_assigned(tmp_path: Path) -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={tmp_path} --xla_dump_hlo_as_text"
    environment = {
        **os.environ,
        "XLA_FLAGS": flags,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(HERE)], env=environment, capture_output=True, text=True, check=True
    )
    made = json.loads(done.stdout.splitlines()[-1])
    assert len(made) == 3
    for name, assigned in made.items():
        (file,) = tmp_path.glob(f"*{name}*cpu_after_optimizations-buffer-assignment.txt")
        (total,) = re.findall(r"total allocation: (?:\S+) \((\d+) bytes\)|Total bytes used: (\d+)", file.read_text())[
            :1
        ]
        assert assigned == pytest.approx(int(next(filter(None, total))), rel=0.05), name
