"""Shapes that only a run knows: of what depends on numbers, as its nodes tell the profiler."""

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
    framework = importlib.import_module("roofline.tensorflow.framework")
    run_shapes = importlib.import_module("roofline.tensorflow.run_shapes")
    function_1 = importlib.import_module("tensorflow.python.framework.function")
    functional_ops = importlib.import_module("tensorflow.python.ops.functional_ops")

from roofline.costs.counted import Counted
from roofline.traces.xplane import reader

STEP = "step"


def counted(step: Callable[[], Any]) -> Counted:
    recorder = framework.TensorFlow(False, (), ())

    def first() -> float:
        step()
        return 0.0

    recorder.first(first)
    recorder.watch_memory(lambda: step())

    def marked() -> None:
        with recorder.mark(f"{STEP}#0"):
            step()

    return recorder.read([reader.read(recorder.profiled(marked))], STEP).counted


def products(found: Counted) -> float:
    return sum(op.costed.cost.model_flops for op in found.ops)


def test_rows_that_a_condition_picks() -> None:
    """3 of 6 rows of 4 are positive: a product of 3 x 4 x 5."""
    x = tf.constant([[float(number)] * 4 for number in (-1, 2, -3, 4, -5, 6)])
    w = tf.ones((4, 5))

    @tf.function(autograph=False)
    def step() -> Any:
        rows = tf.where(x[:, 0] > 0)[:, 0]
        return tf.matmul(tf.gather(x, rows), w)

    found = counted(step)
    assert products(found) == 2 * 3 * 4 * 5
    assert found.unknown == {}


def test_distinct_words_of_a_sparse_lookup() -> None:
    """4 ids of 3 sentences, 3 of them distinct: rows of 8 are added up by sentence, and meet 8 x 2."""
    table, head = tf.Variable(tf.ones((10, 8))), tf.ones((8, 2))
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], tf.constant([1, 5, 5, 7], tf.int64), (3, 2))

    @tf.function(autograph=False)
    def step(ids: Any) -> Any:
        rows = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
        return tf.matmul(rows, head)

    found = counted(lambda: step(ids))
    assert products(found) == 2 * 3 * 8 * 2
    assert found.unknown == {}


def test_segments_of_ragged_rows() -> None:
    """7 numbers in rows of 3, 0 and 4 are summed, 4 x 1 per row of width 4; then 3 x 4 x 4."""
    values = tf.ones((7, 4))

    @tf.function(autograph=False)
    def step(lengths: Any) -> Any:
        ragged = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
        return tf.matmul(tf.reduce_sum(ragged, axis=1), tf.ones((4, 4)))

    lengths = tf.constant([3, 0, 4], tf.int64)
    found = counted(lambda: step(lengths))
    assert products(found) == 2 * 3 * 4 * 4
    assert found.unknown == {}


def test_results_that_only_the_function_returns() -> None:
    """A transposed sparse factor holds 3 numbers and meets 4 columns; how many rows it has is a number of the run."""
    sparse, dense = tf.SparseTensor([[0, 1], [1, 3], [2, 2]], tf.ones(3), (3, 5)), tf.ones((3, 4))

    @tf.function(autograph=False)
    def step(sparse: Any) -> Any:
        return tf.sparse.sparse_dense_matmul(sparse, dense, adjoint_a=True)

    found = counted(lambda: step(sparse))
    assert products(found) == 2 * 3 * 4
    assert found.unknown == {}
    (product,) = found.ops
    assert product.costed.cost.bytes_written == 5 * 4 * 4


def test_compressed_matrices_of_a_function() -> None:
    """3 numbers meet 4 columns, and their transpose 2."""
    sparse, dense = tf.SparseTensor([[0, 1], [1, 3], [2, 2]], tf.ones(3), (3, 5)), tf.ones((5, 4))

    @tf.function(autograph=False)
    def step(sparse: Any) -> Any:
        matrix = tf.raw_ops.SparseTensorToCSRSparseMatrix(
            indices=sparse.indices, values=sparse.values, dense_shape=sparse.dense_shape
        )
        turned = tf.raw_ops.SparseMatrixTranspose(input=matrix, type=tf.float32)
        return (
            tf.raw_ops.SparseMatrixMatMul(a=matrix, b=dense),
            tf.raw_ops.SparseMatrixMatMul(a=turned, b=tf.ones((3, 2))),
        )

    found = counted(lambda: step(sparse))
    assert products(found) == 2 * 3 * 4 + 2 * 3 * 2
    assert found.unknown == {}


def test_a_dimension_that_changes_from_execution_to_execution_stays_unknown() -> None:
    """Of nodes of one name in several functions only what fits the graph is told."""
    assert run_shapes._parsed("(float[2,3];;int32[])") == ((2, 3), None, ())
    seen = {"add": {((2, 3), None): 1, ((4, 3), None): 2, ((7,), None): 1}}
    assert run_shapes.fitting(seen, "add", [(None, 3), None]) == ((None, 3), None)
    assert run_shapes.fitting(seen, "add", [(None,), None]) == ((7,), None)
    assert run_shapes.fitting(seen, "add", [(None, 5), None]) == run_shapes.fitting(seen, "sub", []) == ()


def test_a_library_without_a_level_tells_nothing() -> None:
    with run_shapes.verbose(None):
        assert run_shapes.read(b"") == {}


def test_a_function_that_is_traced_again_for_other_sizes() -> None:
    """5 rows of 4 by 4 x 6 in the first step, 7 in all others: for these TensorFlow traces it for any number."""
    sizes, w = iter((5, 7, 7, 7)), tf.Variable(tf.ones((4, 6)))

    @tf.function(autograph=False, reduce_retracing=True)
    def function(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        w.assign_sub(tape.gradient(loss, w))

    found = counted(lambda: function(tf.ones((next(sizes), 4))))
    assert found.unknown == {}
    assert products(found) == 2 * (2 * 7 * 4 * 6)  # and the gradient of the matrix


def test_products_of_sizes_that_only_a_run_knows_are_asked_for_where_they_are_fused() -> None:
    """3 rows of 4 by 4 x 6 and 6 x 2; the first product may be one kernel with its bias and what follows."""
    x, first, bias, second = tf.ones((3, 4)), tf.ones((4, 6)), tf.ones(6), tf.ones((6, 2))

    @tf.function(autograph=False, input_signature=[tf.TensorSpec((None, 4))])
    def function(x: Any) -> Any:
        return tf.matmul(tf.nn.gelu(tf.nn.bias_add(tf.matmul(x, first), bias)), second)

    found = counted(lambda: function(x))
    assert found.unknown == {}
    assert products(found) == 2 * 3 * 4 * 6 + 2 * 3 * 6 * 2


@pytest.mark.parametrize("for_any", [False, True], ids=["two sizes", "one size and any"])
def test_nodes_of_one_name_are_told_apart_by_what_they_got(for_any: bool) -> None:
    """5 and 7 rows of 4 by 4 x 6 in one step, and gradients: a function of each, whose events have equal names."""
    w = tf.Variable(tf.ones((4, 6)))

    @tf.function(autograph=False, reduce_retracing=for_any)
    def function(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
        return tape.gradient(loss, w)

    found = counted(lambda: (function(tf.ones((5, 4))), function(tf.ones((7, 4)))))
    assert found.unknown == {}
    assert products(found) == 2 * (2 * (5 + 7) * 4 * 6)
    first = found.ops[found.names_of_ops.index("MatMul")]
    assert first.times == 2
    assert first.costed.cost.bytes_read == 4 * ((5 + 7) * 4 + 2 * 4 * 6)
    assert len(first.reads) == len(first.costed.reads) == 4
    assert sorted(first.costed.shapes.split(" and ")) == ["[5,4] x [4,6]", "[7,4] x [4,6]"]


def test_a_size_that_a_function_has_twice_is_named() -> None:
    """6 and 7 rows are one function's: of these it is not known what ran, of the 5 rows of the other one it is."""
    w = tf.ones((4, 6))
    function = tf.function(lambda x: tf.matmul(x, w), autograph=False, reduce_retracing=True)
    found = counted(lambda: [function(tf.ones((rows, 4))) for rows in (5, 6, 7)])
    assert [*found.unknown] == ["MatMul"]
    assert [op.times for op in found.ops] == [3]


def test_loops_whose_bodies_are_functions_of_tensorflow_1() -> None:
    """A loop of 4 turns doubles 3 x 8 numbers, one of 6 turns 5 numbers, both by a node of one name."""

    def loop(turns: int, values: Any) -> Any:
        arguments = (tf.int32, values.dtype)

        def body(turn: Any, x: Any) -> Any:
            x.set_shape(values.shape)
            return turn + 1, tf.multiply(x, 2.0, name="doubled")

        before = function_1.Defun(*arguments)(lambda turn, x: turn < turns)
        return functional_ops.While([tf.constant(0), values], before, function_1.Defun(*arguments)(body))[1]

    @tf.function(autograph=False)
    def step(x: Any, y: Any) -> Any:
        return loop(4, tf.exp(x)), loop(6, tf.exp(y))

    x, y = tf.ones((3, 8)), tf.ones(5)
    found = counted(lambda: step(x, y))
    assert found.unknown == {}
    doubled = found.ops[found.names_of_ops.index("Mul")]
    assert (doubled.costed.cost.vector_flops, doubled.times) == (4 * 3 * 8 + 6 * 5, 4 + 6)


def test_loops_of_one_name_that_grappler_makes_anew_for_their_calls() -> None:
    """7 turns of 1 x 16 by 16 x 16 and 3 of 1 x 8 by 8 x 8: the recurrent layers of Keras 2 are such functions."""

    def layer(turns: int, activation: Any) -> Any:
        def recurrent(x: Any, w: Any) -> Any:
            return tf.while_loop(lambda i, y: i < turns, lambda i, y: (i + 1, activation(y @ w)), (0, x))[1]

        attributes = {"api_implements": f"{turns}", "api_preferred_device": "CPU"}
        return tf.function(recurrent, autograph=False, experimental_attributes=attributes)

    first, second = layer(7, tf.tanh), layer(3, tf.sigmoid)
    x, y, w, v = tf.ones((1, 16)), tf.ones((1, 8)), tf.Variable(tf.eye(16)), tf.Variable(tf.eye(8))
    step = tf.function(lambda: (first(x, w), second(y, v)), autograph=False)
    found = counted(step)
    assert found.unknown == {}
    assert products(found) == 7 * 2 * 16 * 16 + 3 * 2 * 8 * 8
    functions = [op.costed.cost.functions for op in found.ops if op.costed.cost.functions]
    assert {name: number for each in functions for name, number in each.items()} == {"tanh": 7 * 16, "sigmoid": 3 * 8}
