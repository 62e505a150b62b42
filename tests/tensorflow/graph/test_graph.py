"""TensorFlow programs run here in graph mode: collected graphs and a trace give work in closed form, all matched."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("google.protobuf")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    types_pb2 = importlib.import_module("tensorflow.core.framework.types_pb2")
    graphs = importlib.import_module("roofline.tensorflow.graphs")

from roofline.costs.counted import PHASES, Counted, CountedOp
from roofline.tensorflow import count, events
from roofline.tensorflow import model_flops as tf_graph_model
from roofline.tensorflow.graph.graph import DTYPES, Graphs
from roofline.tensorflow.graph.tables import CALLS
from roofline.tensorflow.places import Places
from roofline.timing import executor
from roofline.timing.timed import Timed
from roofline.traces.xplane import reader

PREFIX = "roofline:step"
STEPS = 2


class Recorded(NamedTuple):
    graphs: Graphs
    counted: Counted
    timed: list[Timed]
    model: tf_graph_model.Model

    def flops(self, phase: str) -> float:
        chosen = self.counted.phase == PHASES.index(phase)
        return sum(self.counted.ops[row].costed.cost.flops for row in np.flatnonzero(chosen))

    def model_flops(self, phase: str) -> float:
        chosen = self.counted.phase == PHASES.index(phase)
        return sum(self.counted.ops[row].costed.cost.model_flops for row in np.flatnonzero(chosen))

    def named(self, title: str) -> list:
        return [op for op, name in zip(self.counted.ops, self.counted.names_of_ops, strict=True) if name == title]

    def op(self, event: str) -> CountedOp:
        return self.counted.ops[self.counted.op_of[self.counted.names.index(event)]]

    def place(self, event: str) -> tuple[str, str]:
        row = self.counted.op_of[self.counted.names.index(event)]
        return PHASES[self.counted.phase[row]], self.counted.scopes[self.counted.scope[row]]


def record(run: Callable[[], object], folder: Path, optimizers: tuple[str, ...] = ("optimizer",)) -> Recorded:
    collected = graphs.collect(run)
    run()
    tf.profiler.experimental.start(str(folder), tf.profiler.experimental.ProfilerOptions(2, 0, 1))
    for number in range(STEPS):
        with tf.profiler.experimental.Trace(f"{PREFIX}#{number}"):
            run()
    tf.profiler.experimental.stop()
    trace = reader.read(next(folder.rglob("*.xplane.pb")))
    counted, (owned,) = count.count([trace], PREFIX, collected, optimizers)
    ran = events.executed([trace], PREFIX, collected)
    places = [Places(function.after, function.before, optimizers) for function in collected.functions]
    model = tf_graph_model.assign(ran, collected, places)
    return Recorded(collected, counted, executor.time_steps(trace, owned, len(counted.ops), PREFIX, 0.0), model)


def check(found: Recorded) -> None:
    """What holds of every program: all is matched, known and timed."""
    assert found.graphs.warnings == ()
    assert found.counted.unknown == {}
    assert len(found.timed) == STEPS
    for step in found.timed:
        assert step.joined == 1
        assert step.unmatched == {}
        assert step.unseen == 0
    for op in found.counted.ops:
        assert len(op.reads) == len(op.costed.reads)
        assert len(op.writes) == len(op.costed.writes)


def variable(*shape: int) -> tf.Variable:
    return tf.Variable(np.random.default_rng(0).normal(size=shape).astype("f4") * 0.1)


def data(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(1).normal(size=shape).astype("f4"))


# ---------------------------------------------------------------------------------------------- MLP


@pytest.fixture(scope="module")
def mlp(tmp_path_factory) -> Recorded:
    """8 rows through 5 -> 7 -> 3, mean square, a hand-written SGD update."""
    w1, b1, w2 = variable(5, 7), variable(7), variable(7, 3)
    x = data(8, 5)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            with tf.name_scope("first"):
                h = tf.nn.relu(tf.matmul(x, w1) + b1)
            with tf.name_scope("second"):
                y = tf.matmul(h, w2)
            with tf.name_scope("loss"):
                loss = tf.reduce_mean(tf.square(y))
        weights = [w1, b1, w2]
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * gradient)
        return loss

    return record(step, tmp_path_factory.mktemp("mlp"))


def test_mlp_flops_equal_the_closed_form(mlp: Recorded):
    check(mlp)
    forward = 2 * 8 * 5 * 7 + 2 * 8 * 7 * 3
    # the input needs no gradient: dW1, dW2 and dH
    backward = 2 * 8 * 5 * 7 + 2 * (2 * 8 * 7 * 3)
    assert (mlp.flops("forward"), mlp.flops("backward"), mlp.flops("optimizer")) == (forward, backward, 0)
    assert (mlp.model_flops("forward"), mlp.model_flops("backward")) == (forward, backward)
    assert mlp.model.missing == ()
    assert mlp.model.totals()["forward", "first", "matmul"] == 2 * 8 * 5 * 7


def first_product(mlp: Recorded) -> tuple[CountedOp, bool]:
    """The first product, and whether bias and relu are fused into it: what Grappler fuses is up to the processor."""
    fused = mlp.named("MatMul + BiasAdd + Relu")
    return (fused or mlp.named("MatMul"))[0], bool(fused)


def test_mlp_bytes_of_the_products(mlp: Recorded):
    """Grappler fuses bias and relu into the first product, on some processors: its input, weight, bias in, its result
    out."""
    first, fused = first_product(mlp)
    assert first.costed.cost.bytes_read == 4 * (8 * 5 + 5 * 7 + 7 * fused)
    assert first.costed.cost.bytes_written == 4 * 8 * 7
    products = [op for op in mlp.named("MatMul") if op is not first]
    # second: h, w2 -> y; dW2: h, dy -> w2; dH: dy, w2 -> h; dW1: x, dh -> w1
    h, x, y, w1, w2 = 8 * 7, 8 * 5, 8 * 3, 5 * 7, 7 * 3
    assert sum(op.costed.cost.bytes for op in products) == 4 * (3 * (h + w2 + y) + (x + h + w1))


def test_mlp_phases_and_updates(mlp: Recorded):
    updates = mlp.named("AssignSubVariableOp")
    assert len(updates) == 3
    assert sum(op.costed.cost.bytes for op in updates) == 3 * 4 * (5 * 7 + 7 + 7 * 3)
    assert mlp.place("AssignSubVariableOp:AssignSubVariableOp") == ("optimizer", "optimizer")
    scopes = {mlp.counted.scopes[s] for s, p in zip(mlp.counted.scope, mlp.counted.phase, strict=True) if p == 1}
    assert scopes == {"first", "second", "loss"}


def test_mlp_variables_keep_their_buffer_from_read_to_update(mlp: Recorded):
    first, _ = first_product(mlp)
    written = {buffer for op in mlp.named("AssignSubVariableOp") for buffer in op.writes}
    assert set(first.reads[1:]) <= written  # weight, and bias where it is fused
    assert first.reads[0] not in written


# ---------------------------------------------------------------------------------------------- transformer


BATCH, LENGTH, WIDTH, HEADS, INNER, WORDS = 2, 6, 16, 2, 32, 40


@pytest.fixture(scope="module")
def transformer(tmp_path_factory) -> Recorded:
    """One layer, written with plain ops: einsum and matmul projections, dropout, erf GELU, Adam."""
    words, where = variable(WORDS, WIDTH), variable(LENGTH, WIDTH)
    project = {name: (variable(WIDTH, WIDTH), variable(WIDTH)) for name in ("query", "key", "value", "output")}
    norms = {name: (variable(WIDTH), variable(WIDTH)) for name in ("before", "after")}
    up, down = variable(WIDTH, INNER), variable(INNER, WIDTH)
    weights = [words, where, up, down, *(w for pair in (*project.values(), *norms.values()) for w in pair)]
    state = [[tf.Variable(tf.zeros_like(w)) for w in weights] for _ in range(2)]
    ids = tf.constant(np.random.default_rng(2).integers(0, WORDS, (BATCH, LENGTH)), tf.int32)

    def norm(x, name):
        with tf.name_scope(name):
            mean, variance = tf.nn.moments(x, -1, keepdims=True)
            return tf.nn.batch_normalization(x, mean, variance, norms[name][1], norms[name][0], 1e-5)

    def projected(x, name):
        with tf.name_scope(name):
            return tf.matmul(x, project[name][0]) + project[name][1]

    def split(x):
        return tf.transpose(tf.reshape(x, (BATCH, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def forward():
        with tf.name_scope("embedding"):
            x = tf.gather(words, ids) + where
        with tf.name_scope("attention"):
            h = norm(x, "before")
            query, key, value = (split(projected(h, name)) for name in ("query", "key", "value"))
            scores = tf.matmul(query, key, transpose_b=True) * 0.35
            mixed = tf.matmul(tf.nn.softmax(scores), value)
            mixed = tf.reshape(tf.transpose(mixed, (0, 2, 1, 3)), (BATCH, LENGTH, WIDTH))
            x = x + tf.nn.dropout(projected(mixed, "output"), 0.1)
        with tf.name_scope("ffn"):
            h = tf.nn.gelu(tf.einsum("btd,df->btf", norm(x, "after"), up))
            x = x + tf.einsum("btf,fd->btd", h, down)
        with tf.name_scope("head"):
            return tf.matmul(x, words, transpose_b=True)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = forward()
            with tf.name_scope("loss"):
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(ids, logits))
        gradients = tape.gradient(loss, weights)
        with tf.name_scope("optimizer"):
            for weight, m, v, gradient in zip(weights, *state, gradients, strict=True):
                tf.raw_ops.ResourceApplyAdam(
                    var=weight.handle,
                    m=m.handle,
                    v=v.handle,
                    beta1_power=0.8,
                    beta2_power=0.99,
                    lr=1e-3,
                    beta1=0.9,
                    beta2=0.999,
                    epsilon=1e-8,
                    grad=tf.convert_to_tensor(gradient),
                )
        return loss

    return record(step, tmp_path_factory.mktemp("transformer"))


def test_transformer_flops_equal_the_closed_form(transformer: Recorded):
    check(transformer)
    tokens = BATCH * LENGTH
    projections = 4 * 2 * tokens * WIDTH * WIDTH
    core = 2 * 2 * BATCH * LENGTH * LENGTH * WIDTH
    ffn = 2 * 2 * tokens * WIDTH * INNER
    head = 2 * tokens * WIDTH * WORDS
    forward = projections + core + ffn + head
    assert (transformer.flops("forward"), transformer.flops("backward")) == (forward, 2 * forward)
    assert (transformer.model_flops("forward"), transformer.model_flops("backward")) == (forward, 2 * forward)
    totals = transformer.model.totals()
    assert totals["forward", "attention", "matmul"] == core
    assert totals["backward", "attention", "matmul"] == 2 * core
    assert totals["backward", "attention/query", "matmul"] == 2 * projections / 4


def test_transformer_ops_lie_in_their_layers(transformer: Recorded):
    tops = {scope.partition("/")[0] for scope in transformer.counted.scopes}
    assert tops == {"embedding", "attention", "ffn", "head", "loss", "optimizer"}
    classes = {
        op.costed.op_class
        for op, s in zip(transformer.counted.ops, transformer.counted.scope, strict=True)
        if transformer.counted.scopes[s].startswith(("attention/before", "ffn/after"))
    }
    assert classes == {"normalisation"}
    assert {op.costed.op_class for op in transformer.named("Softmax")} == {"softmax"}


def test_transformer_reads_the_rows_that_it_gathers_and_copies_the_tied_table(transformer: Recorded):
    (gather,) = transformer.named("ResourceGather")
    rows = BATCH * LENGTH
    assert gather.costed.cost.bytes_read == 4 * rows * WIDTH + 4 * rows
    (copy,) = transformer.named("DeepCopy")
    assert copy.costed.cost.bytes == 2 * 4 * WORDS * WIDTH
    (dense,) = transformer.named("UnsortedSegmentSum")
    assert dense.costed.cost.bytes_written == 4 * WORDS * WIDTH
    assert dense.costed.cost.vector_flops == rows * WIDTH


def test_transformer_optimizer_updates_every_parameter_once(transformer: Recorded):
    updates = transformer.named("ResourceApplyAdam")
    # four square matrices, seven vectors of the width, two tables, two inner ones: equal ones are one object
    assert len({id(op.costed) for op in updates}) == 6
    parameters = WORDS * WIDTH + LENGTH * WIDTH + 2 * WIDTH * INNER + 4 * (WIDTH * WIDTH + WIDTH) + 4 * WIDTH
    assert len(updates) == 16
    assert sum(op.costed.cost.vector_flops for op in updates) == 12 * parameters
    # parameter, two moments and gradient read, three written, six numbers per op
    assert sum(op.costed.cost.bytes for op in updates) == 4 * 7 * parameters + len(updates) * 24


# ---------------------------------------------------------------------------------------------- convolutions


def test_a_convolution_net_counts_valid_positions_and_no_unwanted_gradient(tmp_path: Path):
    """9x9, stride 2, SAME: 5 positions and 3 taps with one row of padding each side: 4 + 5 + 4 = 13 pairs a side."""
    w1, w2, scale, offset = variable(3, 3, 2, 4), variable(2, 2, 4, 3), variable(4), variable(4)
    x = data(2, 9, 9, 2)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            with tf.name_scope("one"):
                y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w1, 2, "SAME"), offset))
            with tf.name_scope("norm"):
                y, _, _ = tf.compat.v1.nn.fused_batch_norm(y, scale, offset)
            with tf.name_scope("two"):
                y = tf.nn.max_pool2d(tf.nn.conv2d(y, w2, 1, "VALID"), 2, 2, "VALID")
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, [w1, w2, scale, offset])

    found = record(step, tmp_path)
    check(found)
    one = 2 * 2 * 13 * 13 * 2 * 4
    two = 2 * 2 * (4 * 4) * (2 * 2) * 4 * 3
    assert found.flops("forward") == found.model_flops("forward") == one + two
    # both gradients of the second, but the image needs none
    assert found.flops("backward") == found.model_flops("backward") == one + 2 * two
    norm = [op for op in found.counted.ops if op.costed.op_class == "normalisation"]
    number = 2 * 5 * 5 * 4
    assert sum(op.costed.cost.vector_flops for op in norm) == (8 + 11) * number + 4


def test_a_graph_is_read_whatever_types_grappler_gave_its_ops(tmp_path: Path):
    """Grappler gives a bias to a convolution in bf16, and one in fp32 makes the gradient of its own as oneDNN runs it.

    4 x 4 places and 2 x 2 of every second one, each by a kernel of one tap: 3 channels to 5, then 5 to 2.
    """
    kernel, bias, second, second_bias = variable(1, 1, 3, 5), variable(5), variable(1, 1, 5, 2), variable(2)
    image = data(2, 4, 4, 3)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            low, taps, offset = (tf.cast(value, tf.bfloat16) for value in (image, kernel, bias))
            y = tf.cast(tf.nn.bias_add(tf.nn.conv2d(low, taps, 1, "SAME"), offset), tf.float32)
            y = tf.nn.bias_add(tf.nn.conv2d(y, second, 2, "VALID"), second_bias)
            loss = tf.reduce_sum(tf.square(y))
        weights = [kernel, bias, second, second_bias]
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * gradient)
        return loss

    found = record(step, tmp_path)
    check(found)
    one, two = 2 * 2 * 4 * 4 * 3 * 5, 2 * 2 * 2 * 2 * 5 * 2
    assert found.flops("forward") == found.model_flops("forward") == one + two
    assert found.flops("backward") == found.model_flops("backward") == one + 2 * two
    with_bias = [node for node in found.graphs.functions[0].after if node.op.endswith("BackpropFilterWithBias")]
    assert all(kernel.shape[-1:] == bias.shape for kernel, bias in (node.outputs for node in with_bias))


def test_a_padding_that_onednn_takes_in_is_in_the_shapes_behind_it(tmp_path: Path):
    """2 zeros on either side of 5 x 5 places: 3 results in either direction, 2 apart, of 3, 5 and 3 taps inside.

    Where TensorFlow leaves oneDNN out, as it did on a CPU without AVX-512, the padding is an op, zeros are multiplied.
    """
    image, kernel = data(2, 5, 5, 3), data(5, 5, 3, 5)

    @tf.function
    def step(image, kernel):
        padded = tf.pad(image, ((0, 0), (2, 2), (2, 2), (0, 0)))
        return tf.square(tf.nn.conv2d(padded, kernel, 2, "VALID"))

    found = record(lambda: step(image, kernel), tmp_path)
    check(found)
    is_op = any(node.op == "Pad" for node in found.graphs.functions[0].after)
    assert found.flops("forward") == 2 * 2 * 3 * 5 * (5 + 5 + 5 if is_op else 3 + 5 + 3) ** 2
    assert found.model_flops("forward") == 2 * 2 * 3 * 5 * (3 + 5 + 3) ** 2
    (square,) = (op.costed for op in found.counted.ops if op.costed.kind == "Square")
    assert square.cost.bytes_written == 4 * 2 * 3 * 3 * 5


def test_depthwise_and_3d_convolutions(tmp_path: Path):
    """VALID, stride 1: every tap counts. Depthwise: 2 filters for each of 3 channels, 4x4 results of 3x3 taps."""
    deep, wide = variable(3, 3, 3, 2), variable(2, 2, 2, 3, 5)
    x, volume = data(1, 6, 6, 3), data(1, 3, 3, 3, 3)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            a = tf.nn.depthwise_conv2d(x, deep, [1, 1, 1, 1], "VALID")
            b = tf.nn.conv3d(volume, wide, [1] * 5, "VALID")
            loss = tf.reduce_sum(a) * tf.reduce_sum(b)
        return tape.gradient(loss, [deep, wide, x])

    found = record(step, tmp_path)
    check(found)
    depthwise, three = 2 * 16 * 9 * 6, 2 * 8 * 8 * 3 * 5
    assert found.flops("forward") == depthwise + three
    assert found.flops("backward") == 2 * depthwise + three


# ---------------------------------------------------------------------------------------------- control flow


def test_loops_count_every_trip_branches_what_ran_and_calls_what_they_call(tmp_path: Path):
    """One product of [4,8] x [8,8] is 512. Loop 3, called 1, branch taken 2, rows one by one 1 in all."""
    w = variable(8, 8)
    x = data(4, 8)
    trips, flag = tf.constant(3), tf.constant(False)

    @tf.function(autograph=False)
    def inner(x):
        return tf.matmul(x, w)

    @tf.function(autograph=False)
    def step(x, trips, flag):
        with tf.GradientTape() as tape:
            with tf.name_scope("loop"):
                y = tf.while_loop(lambda i, a: i < trips, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w))), (0, x))[1]
            with tf.name_scope("call"):
                y = inner(y)
            with tf.name_scope("branch"):
                y = tf.cond(flag, lambda: tf.matmul(y, w), lambda: tf.matmul(tf.matmul(y, w), w))
            with tf.name_scope("rows"):
                y = tf.map_fn(lambda row: tf.matmul(row[None], w)[0], y)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, w)

    found = record(lambda: step(x, trips, flag), tmp_path)
    check(found)
    one = 2 * 4 * 8 * 8
    assert found.flops("forward") == found.model_flops("forward") == (3 + 1 + 2 + 1) * one
    # each product has two gradients, but the first trip's input is still an input of the loop, so it has both too
    assert found.flops("backward") == found.model_flops("backward") == 2 * (3 + 1 + 2 + 1) * one
    totals = found.model.totals()
    assert totals["forward", "loop", "matmul"] == 3 * one
    assert totals["forward", "branch", "matmul"] == 2 * one
    assert totals["backward", "loop", "matmul"] == 6 * one
    assert found.model.missing == ()
    (body,) = (op for op in found.named("Tanh"))
    assert body.times == 3
    assert body.costed.cost.functions == {"tanh": 3 * 32}


def test_a_loop_that_grows_its_state_has_unknown_work_that_is_named(tmp_path: Path):
    w = variable(3, 3)

    @tf.function(autograph=False)
    def step(x):
        shapes = (tf.TensorShape(()), tf.TensorShape((None, 3)))
        body = lambda i, a: (i + 1, tf.concat([a, tf.matmul(a, w)[:1]], 0))  # noqa: E731
        return tf.while_loop(lambda i, a: i < 3, body, (0, x), shape_invariants=shapes)[1]

    x = data(2, 3)
    found = record(lambda: step(x), tmp_path)
    assert {"MatMul", "ConcatV2"} <= set(found.counted.unknown)
    assert "MatMul" in found.counted.unknown["MatMul"]
    assert found.timed[0].joined == 1
    (product,) = found.named("MatMul")
    assert product.costed.cost.flops is None


def test_gradients_of_rows_touch_rows(tmp_path: Path):
    """Two tables: one updated by rows, one whose gradient is added up into a dense table."""
    table, rows = variable(50, 4), tf.constant([1, 2, 2])

    @tf.function
    def step():
        with tf.GradientTape() as tape, tf.name_scope("words"):
            loss = tf.reduce_sum(tf.square(tf.gather(table, rows)))
        gradient = tape.gradient(loss, table)
        tf.raw_ops.ResourceScatterSub(resource=table.handle, indices=gradient.indices, updates=0.1 * gradient.values)
        return loss

    found = record(step, tmp_path)
    check(found)
    (gather,), (scatter,) = found.named("ResourceGather"), found.named("ResourceScatterSub")
    assert gather.costed.cost.bytes == 48 + 12 + 48
    # updates, indices and rows read, rows written
    assert scatter.costed.cost.bytes == 48 + 12 + 48 + 48
    assert scatter.writes == gather.reads[:1]
    assert found.place("ResourceScatterSub:ResourceScatterSub")[0] == "optimizer"


def test_keras_like_batch_norm_written_out_is_normalisation(tmp_path: Path):
    scale, kept = variable(4), variable(4)
    x = data(6, 4)

    @tf.function
    def step():
        with tf.GradientTape() as tape, tf.name_scope("batchnorm_3"):
            mean, variance = tf.nn.moments(x, 0)
            y = (x - mean) * tf.math.rsqrt(variance + 1e-3) * scale
            kept.assign(0.9 * kept + 0.1 * mean)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, scale)

    found = record(step, tmp_path)
    check(found)
    classes = {op.costed.op_class for op in found.counted.ops}
    assert classes == {"normalisation"}
    # the value that is assigned is computed into the variable that its first term read
    decayed, renewed = found.op("batchnorm_3/mul_2:Mul"), found.op("batchnorm_3/add_1:AddV2")
    assert renewed.writes[0] in decayed.reads


def test_an_op_without_a_rule_is_named_and_the_rest_is_counted(tmp_path: Path):
    x = data(4, 4)

    @tf.function
    def step():
        return tf.matmul(tf.linalg.eigh(tf.matmul(x, x, transpose_b=True) + 10.0 * tf.eye(4))[1], x)

    found = record(step, tmp_path)
    assert list(found.counted.unknown) == ["SelfAdjointEigV2"]
    assert "its numbers" in found.counted.unknown["SelfAdjointEigV2"]
    assert found.timed[0].joined == 1


def test_a_function_that_was_called_before_shows_its_graph_again(tmp_path: Path):
    x = data(4, 4)
    step = tf.function(lambda: tf.matmul(x, x))
    step()
    found = record(step, tmp_path)
    check(found)
    assert found.flops("forward") == 2 * 4**3


def test_a_step_that_failed_spoils_no_later_one(tmp_path: Path):
    """One of two functions was called before the failure, and shows its graph beside the other all the same."""
    x = data(4, 4)
    square, cube = tf.function(lambda: tf.matmul(x, x)), tf.function(lambda: tf.matmul(tf.matmul(x, x), x))

    def failing():
        square()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        graphs.collect(failing)
    found = record(lambda: (square(), cube()), tmp_path)
    check(found)
    # Both name their first product MatMul, and are of equal shapes.
    assert len(found.graphs.functions) == 2


def test_constants_that_python_makes_when_it_is_called_back_are_no_part_of_the_graph():
    x = data(4, 6)

    def step():
        low, high = tf.py_function(lambda x: (x[:, :2], x[:, 2:]), [x], (tf.float32, tf.float32))
        return tf.raw_ops.MatMul(a=low, b=high, transpose_a=True)

    for _ in range(2):  # what was made ready is made so again
        found = graphs.collect(tf.function(step))
        assert found.warnings == ()
        assert {node.op for node in found.functions[0].before} >= {"EagerPyFunc", "MatMul"}


def test_what_runs_outside_of_a_function_is_not_silently_idle(tmp_path: Path):
    x = data(4, 4)
    found = record(lambda: tf.matmul(x, x), tmp_path)
    assert "EagerLocalExecute: MatMul" in found.timed[0].unmatched


def test_what_cannot_be_read_is_a_warning(monkeypatch: pytest.MonkeyPatch):
    def broken(*_graph):
        raise ValueError("damaged\nand more")

    x = data(4, 4)
    monkeypatch.setattr(graphs, "inferred", broken)
    found = graphs.collect(tf.function(lambda: tf.matmul(x, x) + 1.0))
    assert found.functions == ()
    assert all("ValueError: damaged" in warning and "\n" not in warning for warning in found.warnings)
    assert found.warnings


def test_collection_is_switched_off_when_the_step_raises():
    from tensorflow.python.eager import context

    with pytest.raises(ZeroDivisionError):
        graphs.collect(lambda: 1 / 0)
    step = tf.function(lambda: tf.matmul(data(4, 4), data(4, 4)))
    step()
    assert len(context.context().export_run_metadata().function_graphs) == 0


def test_gradients_stand_where_the_tables_say():
    """The rules for updates of parameters look for the gradient at the place that TensorFlow gives it."""
    from tensorflow.python.framework import op_def_registry

    from roofline.tensorflow.graph.tables import GRADIENT, UPDATES

    assert set(GRADIENT) == set(UPDATES)
    for rule, place in GRADIENT.items():
        for prefix in ("ResourceApply", "ResourceSparseApply"):
            known = op_def_registry.get(prefix + rule)
            if known is not None:
                names = [argument.name for argument in known.input_arg]
                assert names[place] in ("grad", "delta"), (prefix, rule)
                handles = [a.name for a in known.input_arg if a.type == tf.resource.as_datatype_enum]
                assert len(handles) == UPDATES[rule][0], (prefix, rule)


def test_every_op_with_a_rule_exists():
    """A misspelt op would never match; grappler's and oneDNN's own are found under their base name."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session as c_api
    from tensorflow.python.framework import op_def_registry

    from roofline.tensorflow.graph import tables as kinds

    assert op_def_registry.get("_FusedMatMul") is not None
    listed = op_def_pb2.OpList.FromString(c_api.TF_GetBuffer(c_api.TF_GetAllOpList()))
    known = {kinds.base(one.name) for one in listed.op}
    ours = {*kinds.ELEMENTWISE, *kinds.REDUCTIONS, *kinds.MOVEMENT, *kinds.RANDOM, *kinds.VIEWS, *kinds.CONTRACTIONS}
    assert sorted(ours - known) == []


def test_ops_that_call_functions_are_ops_of_tensorflow() -> None:
    """By the names under which TensorFlow registers them, with the attributes that hold the functions."""
    from tensorflow.python.framework import op_def_registry

    for name, attributes in CALLS.items():
        assert {*attributes} <= {attribute.name for attribute in op_def_registry.get(name).attr}, name


def test_all_types_of_numbers_have_a_name_and_the_size_that_tensorflow_gives_them() -> None:
    kinds = {tf.as_dtype(number).base_dtype for number in types_pb2.DataType.values() if number}
    sizes = {kind.name: kind.size for kind in kinds - {tf.string, tf.variant, tf.resource}}
    assert sizes.items() <= {name: size for name, (_, size) in DTYPES.items()}.items()
