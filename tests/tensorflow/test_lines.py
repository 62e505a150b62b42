"""Which line asked for a node: by the tracebacks of the program, whose nodes grappler and gradients make others of."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

tf = pytest.importorskip("tensorflow")

from roofline.tensorflow import graphs, lines

PROGRAM = """
import tensorflow as tf

weights = tf.Variable(tf.ones((8, 4)))

def dense(x):
    return tf.tanh(x @ weights)            # 7

@tf.function
def train(x):
    with tf.GradientTape() as tape:
        y = dense(x)
        for _ in tf.range(2):
            y = y * 3.0                    # 14
        loss = tf.reduce_sum(y**2)         # 15
    gradient = tape.gradient(loss, weights)
    weights.assign_sub(0.1 * gradient)     # 17
    return loss

@tf.function
def evaluate(x):
    return tf.reduce_sum(dense(x)**2)      # 22, where a node is called as that of 15

@tf.function
def project(x):
    return x @ weights                     # 26, where a node is called as that of 7
"""


def test_lines_of_the_nodes_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program_in_tensorflow.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    program = import_module("program_in_tensorflow")
    program.evaluate(tf.ones((6, 8)))
    program.project(tf.ones((6, 8)))
    found = graphs.collected(lambda: program.train(tf.ones((6, 8))))
    emptied = type(found.metadata.function_graphs[0])()  # as of a constant that Python made meanwhile
    line, asked = lines.by_traceback([*found.metadata.function_graphs, emptied]), {}
    for function in found.graphs.functions:
        for node in function.after:
            file, _, number = (line(node.name) or ":0").rpartition(":")
            assert file in (
                "program_in_tensorflow.py",
                "",
                Path(__file__).name,
                f"tests/tensorflow/{Path(__file__).name}",
            )
            asked.setdefault((node.name.startswith("gradient_tape"), node.op), set()).add(int(number))
    (product,) = {op for _, op in asked if "MatMul" in op}  # as oneDNN calls it
    assert asked[False, product] == asked[True, product] == {7}
    assert asked[False, "Tanh"] == {7}
    assert 14 in asked[False, "Mul"]
    assert asked[False, "Sum"] == {15}
    assert asked[False, "AssignSubVariableOp"] == {17}
    sys.modules.pop("program_in_tensorflow")


def test_names_that_grappler_and_gradients_make() -> None:
    line = lines.by_name(
        [("a/MatMul", "m.py:1"), ("b/Tanh", "m.py:2"), ("b/Tanh", "m.py:3"), ("gradient_tape/TanhGrad", "m.py:4")]
    )
    assert line("a/MatMul") == line("ArithmeticOptimizer/a/MatMul") == line("a/MatMul/enter/_7") == "m.py:1"
    assert line("gradient_tape/a/MatMul/MatMul_1") == line("StatefulPartitionedCall/a/MatMul") == "m.py:1"
    assert line("gradient_tape/TanhGrad") == "m.py:4"
    assert line("b/Tanh") is None  # two functions have one
    assert line("a/Add") is None


def test_a_function_that_is_dropped_meanwhile_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    eager_context = lines.context.context()
    eager_context.ensure_initialized()
    names = eager_context.list_function_names()
    monkeypatch.setattr(eager_context, "list_function_names", lambda: [*names, "dropped_meanwhile"])
    assert lines.by_traceback(())("no node") is None
