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


def test_a_dimension_that_changes_from_execution_to_execution_stays_unknown() -> None:
    """Of nodes of one name in several functions only what fits the graph is told."""
    assert run_shapes._parsed("(float[2,3];;int32[])") == ((2, 3), None, ())
    seen = {"add": frozenset((((2, 3), None), ((4, 3), None), ((7,), None)))}
    assert run_shapes.fitting(seen, "add", [(None, 3), None]) == ((None, 3), None)
    assert run_shapes.fitting(seen, "add", [(None,), None]) == ((7,), None)
    assert run_shapes.fitting(seen, "add", [(None, 5), None]) == run_shapes.fitting(seen, "sub", []) == ()


def test_a_library_without_a_level_tells_nothing() -> None:
    with run_shapes.verbose(None):
        assert run_shapes.read(b"") == {}
