"""TensorFlow steps of which XLA compiles nothing, a part, or all: every event is one op's, and work is counted once."""

from __future__ import annotations

import importlib
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("google.protobuf")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    collecting = importlib.import_module("roofline.tensorflow.graphs")

from roofline.costs.counted import PHASES, Counted
from roofline.tensorflow import with_xla
from roofline.timing import executor
from roofline.timing.executor import Owned
from roofline.timing.timed import Timed
from roofline.traces.xplane import reader
from roofline.xla import model_flops
from roofline.xla.hlo import module as hlo

STEP = "step"
# 2 x 32 x 64 x 64 FLOPs of one product.
PRODUCT = 2 * 32 * 64 * 64


class Read(NamedTuple):
    trace: reader.XTrace
    graphs: Any
    counted: Counted
    owned: Owned
    timed: Timed

    def total(self, what: str) -> float:
        return float(sum(getattr(op.costed.cost, what) for op in self.counted.ops))


def traced(run: Callable[[], Any]) -> tuple[reader.XTrace, Any]:
    """The trace of one marked step after the first one, whose graphs are kept."""
    graphs = collecting.collect(run)
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder, options=options)
        with tf.profiler.experimental.Trace(f"{STEP}#0"):
            run()
        tf.profiler.experimental.stop()
        (file,) = Path(folder).rglob("*.xplane.pb")
        return reader.read(file), graphs


def read(trace: reader.XTrace, graphs: Any) -> Read:
    counted, (owned,) = with_xla.count([trace], STEP, graphs)
    (timed,) = executor.time_steps(trace, owned, len(counted.ops), STEP, 0.0)
    return Read(trace, graphs, counted, owned, timed)


def ran(run: Callable[[], Any]) -> Read:
    return read(*traced(run))


def function(body: Callable[..., Any], compiled: bool = False) -> Any:
    return tf.function(body, jit_compile=compiled, autograph=False)


def inputs() -> tuple[Any, Any]:
    return tf.ones((32, 64)), tf.eye(64)


@pytest.mark.parametrize("compiled", [(False, False), (False, True), (True, True)])
def test_two_functions_one_of_them_twice(compiled: tuple[bool, bool]) -> None:
    x, w = inputs()
    one = function(lambda x: tf.tanh(x @ w), compiled[0])
    two = function(lambda x: tf.tanh(x @ w) @ w, compiled[1])
    found = ran(lambda: (one(x), two(x), one(x)))
    assert found.total("flops") == found.total("model_flops") == 4 * PRODUCT
    assert sum((op.costed.cost.functions or {}).get("tanh", 0) for op in found.counted.ops) == 3 * 32 * 64
    assert (found.timed.joined, found.timed.unseen, found.timed.unmatched) == (1.0, 0, {})
    shares = found.timed.own[:, 0] - found.timed.overlap
    assert shares.sum() + found.timed.idle[0] == pytest.approx(found.timed.walls[0], rel=1e-9)


def test_a_compiled_function_that_a_graph_calls_twice_counts_twice_and_its_call_not_at_all() -> None:
    x, w = inputs()
    inner = function(lambda x: tf.tanh(x @ w) @ w, True)
    outer = function(lambda x: inner(inner(tf.nn.relu(x @ w))))
    found = ran(lambda: outer(x))
    assert found.total("flops") == found.total("model_flops") == 5 * PRODUCT
    assert found.timed.joined == 1.0
    # The node that calls holds the events of instructions: an instant of it is not another op's as well.
    chosen = found.owned.op >= 0
    lines = found.trace.line[chosen]
    for line in np.unique(lines).tolist():
        mine = np.flatnonzero(chosen)[lines == line]
        order = np.argsort(found.owned.start[mine], kind="stable")
        assert (found.owned.start[mine][order][1:] >= found.trace.end[mine][order][:-1]).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_step_asks_for_the_same_in_both(compiled: bool) -> None:
    x, start = inputs()
    w = tf.Variable(start)

    def train() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ w) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))

    found = ran(function(train, compiled))
    phases = [PHASES[at] for at in found.counted.phase.tolist()]
    for phase in ("forward", "backward"):
        work = [op.costed.cost for op, at in zip(found.counted.ops, phases, strict=True) if at == phase]
        assert sum(cost.model_flops or 0 for cost in work) == sum(cost.flops or 0 for cost in work) == PRODUCT


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("trips", [1, 7])
def test_a_loop_counts_what_ran(trips: int, compiled: bool) -> None:
    x, w = inputs()
    limit = tf.constant(trips)

    def loop(limit: Any) -> Any:
        return tf.while_loop(lambda i, y: i < limit, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, x))

    looped = function(loop, compiled)
    found = ran(lambda: looped(limit))
    assert found.total("flops") == found.total("model_flops") == trips * PRODUCT


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("choice", [False, True])
def test_of_a_conditional_what_ran_counts(choice: bool, compiled: bool) -> None:
    x, w = inputs()
    which = tf.constant(choice)
    body = function(lambda p: tf.cond(p, lambda: (x @ w) @ w, lambda: tf.tanh(x @ w)), compiled)
    assert ran(lambda: body(which)).total("flops") == (2 if choice else 1) * PRODUCT


def test_nodes_and_instructions_have_buffers_of_their_own_and_scopes_in_common() -> None:
    x, w = inputs()

    def net(x: Any) -> Any:
        with tf.name_scope("layer"):
            return tf.tanh(x @ w)

    graph, compiled = function(net), function(net, True)
    found = ran(lambda: compiled(graph(x)))
    counted = found.counted
    assert counted.scopes.count("layer") == 1
    products = [row for row, op in enumerate(counted.ops) if op.costed.cost.flops]
    assert {counted.scopes[counted.scope[row]] for row in products} == {"layer"}
    node, instruction = (counted.ops[row] for row in products)
    assert not {*node.reads, *node.writes} & {*instruction.reads, *instruction.writes}
    assert len(counted.names) == len(counted.op_of) == len(counted.view_of)
    assert counted.op_of.max() == len(counted.ops) - 1


def test_instructions_of_a_program_that_the_trace_lacks_are_lost_and_not_idle() -> None:
    x, w = inputs()
    graph, compiled = function(lambda x: tf.nn.relu(x @ w)), function(lambda x: tf.tanh(x @ w), True)
    trace, graphs = traced(lambda: compiled(graph(x)))
    columns = {name: getattr(trace, name) for name in trace.__slots__ if name != "modules"}
    found = read(reader.XTrace(**columns, modules={}), graphs)
    assert found.total("flops") == PRODUCT  # the node's
    assert found.timed.joined < 1
    assert found.timed.extra
    assert sum(found.timed.unmatched.values()) > 0


@pytest.mark.parametrize("compiled", [False, True])
def test_each_convolution_asks_for_what_it_executes(compiled: bool) -> None:
    """Fused with bias and activation, and its two gradients, and compiled by XLA, where they lose their names."""
    image, filters = tf.ones((2, 8, 8, 3)), [tf.Variable(tf.ones((3, 3, 3, 3))) for _ in range(2)]
    biases = [tf.Variable(tf.zeros(3)) for _ in range(2)]

    def train() -> None:
        with tf.GradientTape() as tape:
            hidden = image
            for number, (weight, bias) in enumerate(zip(filters, biases, strict=True)):
                with tf.name_scope(f"layer{number}"):
                    hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(hidden, weight, 1, "SAME"), bias))
            loss = tf.reduce_sum(hidden**2)
        for variable, gradient in zip(filters + biases, tape.gradient(loss, filters + biases), strict=True):
            variable.assign_sub(0.1 * gradient)

    found = ran(function(train, compiled))
    products = [op.costed.cost for op in found.counted.ops if op.costed.cost.flops]
    # Of 8 x 3 taps in each direction 2 lie in the padding. Two forward, two of the filters, one of the hidden layer.
    once = 2 * 2 * 22 * 22 * 3 * 3
    assert [cost.flops for cost in products] == [cost.model_flops for cost in products] == [once] * 5


def test_a_loop_that_xla_runs_as_one_kernel_asks_for_all_its_trips() -> None:
    """19 products of 2 x 2 matrices, 16 FLOP each, in a scan whose length TensorFlow compares with two limits."""
    w = tf.eye(2)
    steps = {
        "a constant": (function(lambda x: tf.scan(lambda h, y: tf.tanh(h @ x) + y, tf.ones(19), w), True), (w,)),
        "given": (function(lambda x, ys: tf.scan(lambda h, y: h @ x + y, ys, x), True), (w, tf.ones(19))),
        "mapped": (function(lambda many: tf.map_fn(lambda a: a @ a, many), True), (tf.ones((19, 2, 2)),)),
    }
    for name, (step, given) in steps.items():
        found = ran(lambda step=step, given=given: step(*given))
        assert not found.counted.unknown, name
        assert found.total("flops") == found.total("model_flops") == 19 * 16, name


def model_flops_of(step: Any, compiled: bool) -> float:
    """What a step without arguments asks for, of the graph that it runs or of the program that XLA is given."""
    return asked_of(function(step, True)) if compiled else ran(function(step)).total("model_flops")


def asked_of(compiled_function: Any) -> float:
    found = model_flops.asked(hlo.read(compiled_function.experimental_get_compiler_ir()(stage="hlo_serialized")))
    assert not found.as_executed
    return sum(found.fixed.values())


def asked_and_executed(step: Any, compiled: bool) -> tuple[float, float]:
    """FLOPs of such a step: as `model_flops_of`, and those that ran."""
    traced_once = function(step, compiled)
    found = ran(traced_once)
    return asked_of(traced_once) if compiled else found.total("model_flops"), found.total("flops")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("keeps", [True, False])
def test_what_recompute_grad_runs_again_was_asked_for_once(compiled: bool, keeps: bool) -> None:
    """Two products forward and their gradients, but that of the input; the two once more, whose tanh are needed.

    Where nobody keeps the loss XLA leaves the first two out, and those of the backward pass are the only ones.
    """
    x, (v, w) = tf.ones((32, 64)), (tf.Variable(tf.eye(64)), tf.Variable(tf.eye(64)))

    def block(y: Any) -> Any:
        return tf.tanh(tf.tanh(y @ v) @ w)

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.recompute_grad(block)(tf.tanh(x)) ** 2 if keeps else tf.recompute_grad(block)(x))
        return (loss if keeps else None), tape.gradient(loss, [v, w])

    assert model_flops_of(step, compiled) == 5 * PRODUCT
    if keeps:
        assert ran(function(step, compiled)).total("flops") == 7 * PRODUCT


@pytest.mark.parametrize("compiled", [False, True])
def test_what_recompute_grad_makes_of_variables_alone_was_asked_for_once(compiled: bool) -> None:
    """Two weights' product of 64 x 64 x 64 and the input's with it, and their gradients, but that of the input."""
    x, (v, w) = tf.ones((32, 64)), (tf.Variable(tf.eye(64)), tf.Variable(tf.eye(64)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.recompute_grad(lambda y: tf.tanh(y @ tf.tanh(v @ w)))(tf.tanh(x)) ** 2)
        return loss, tape.gradient(loss, [v, w])

    weights = 2 * 64**3
    assert model_flops_of(step, compiled) == (weights + PRODUCT) + (2 * weights + PRODUCT)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_recompute_grad_runs_twice_more_was_asked_for_once(compiled: bool) -> None:
    """Two products and their gradients, but that of the input; both again, and the first, which is in two functions."""
    x, (v, w) = tf.ones((32, 64)), (tf.Variable(tf.eye(64)), tf.Variable(tf.eye(64)))
    inner = tf.recompute_grad(lambda y: tf.tanh(y @ v))
    outer = tf.recompute_grad(lambda y: tf.tanh(inner(y) @ w))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(outer(tf.tanh(x)) ** 2)
        return loss, tape.gradient(loss, [v, w])

    assert asked_and_executed(step, compiled) == ((2 + 3) * PRODUCT, (2 + 2 + 1 + 3) * PRODUCT)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_recompute_grad_runs_again_in_a_loop_was_asked_for_once(compiled: bool) -> None:
    """Three trips of a product, and of two that are done again, and both gradients of each.

    XLA is told the trips of the gradient's loop as the number that the loop itself counted.
    """
    x, (u, v, w) = tf.ones((32, 64)), (tf.Variable(tf.eye(64)), tf.Variable(tf.eye(64)), tf.Variable(tf.eye(64)))
    block = tf.recompute_grad(lambda y, v, w: tf.tanh(tf.tanh(y @ v) @ w))

    def trip(i: Any, y: Any) -> Any:
        return i + 1, block(tf.sin(y @ u), v.value(), w.value())

    def step() -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.while_loop(lambda i, y: i < 3, trip, (0, tf.tanh(x)), maximum_iterations=3)[1]
            loss = tf.reduce_sum(hidden**2)
        return loss, tape.gradient(loss, [u, v, w])

    assert asked_and_executed(step, compiled) == (3 * (3 + 6) * PRODUCT, 3 * (3 + 2 + 6) * PRODUCT)


@tf.custom_gradient
def product(y: Any, w: Any) -> Any:
    """Multiply matrices, with gradients whose names do not say what they are."""
    return y @ w, lambda upstream: (upstream @ tf.transpose(w), tf.transpose(y) @ upstream)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_that_recompute_grad_waits_for_is_no_repetition(compiled: bool) -> None:
    """Two products: of the first, which is done again, the gradient of its weight, and both gradients of the second."""
    x, (v, w) = tf.ones((32, 64)), (tf.Variable(tf.eye(64)), tf.Variable(tf.eye(64)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.recompute_grad(lambda y: tf.tanh(y @ v))(tf.tanh(x))
            loss = tf.reduce_sum(product(hidden, w) ** 2)
        return loss, tape.gradient(loss, [v, w])

    assert model_flops_of(step, compiled) == (1 + 1) * PRODUCT + (1 + 2) * PRODUCT


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_a_vectorized_map_in_recompute_grad_are_asked_for(compiled: bool) -> None:
    """A product forward, which is not done again where nobody needs its result, and both of its gradients."""
    x, v = tf.ones((32, 64)), tf.Variable(tf.eye(64))

    def step() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            block = tf.recompute_grad(lambda y: tf.vectorized_map(lambda row: tf.tanh(row[None] @ v)[0], y))
            loss = tf.reduce_sum(block(tf.tanh(x)) ** 2)
        return loss, tape.gradient(loss, [x, v])

    assert model_flops_of(step, compiled) == (1 + 2) * PRODUCT


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cross_entropy_that_checks_its_labels_recomputes_nothing(compiled: bool) -> None:
    """A product in a loop of one trip, one of as many FLOPs that only the loss takes, and its gradient."""
    x, w, labels = tf.ones((32, 64)), tf.Variable(tf.eye(64)), tf.zeros(32, tf.int32)

    def step() -> Any:
        hidden = tf.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, y @ tf.ones((64, 64))), (0, x))[1]
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=hidden @ w)
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, w)

    assert model_flops_of(step, compiled) == 3 * PRODUCT


@pytest.mark.parametrize("compiled", [False, True])
def test_patches_of_an_image_ask_for_no_product(compiled: bool) -> None:
    """XLA is handed a convolution that picks 12 numbers for each of 2 x 5 x 4 patches, and no other product."""
    image = tf.ones((2, 6, 5, 3))

    def step() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(image)
            patches = tf.image.extract_patches(tf.sin(image), [1, 2, 2, 1], [1] * 4, [1] * 4, "VALID")
            loss = tf.reduce_sum(patches**2)
        return loss, tape.gradient(loss, image)

    assert model_flops_of(step, compiled) == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_of_a_gradient_is_no_recomputation(compiled: bool) -> None:
    x, v = tf.ones((32, 64)), tf.Variable(tf.eye(64))

    def step() -> Any:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(tf.tanh(x @ v) ** 2)
            penalty = tf.reduce_sum(tape.gradient(loss, x) ** 2)
        return outer.gradient(penalty, v)

    asked, executed = asked_and_executed(step, compiled)
    assert asked == executed >= 4 * PRODUCT


@pytest.mark.parametrize(
    "also", [pytest.param(tf.linalg.cholesky, id="factor"), pytest.param(tf.linalg.svd, marks=pytest.mark.thorough)]
)
def test_products_that_solving_is_written_out_with_are_linear_algebra(also: Callable[[Any], Any]) -> None:
    """A solution of 8 x 8 equations with 3 right sides, a factor or singular values, and a product of 3 x 8 x 5.

    XLA is handed a solution as factors, a triangular solve and a product, and makes loops of products of these.
    """
    a, b, w = 3 * tf.eye(8) + 0.1, tf.ones((8, 3)), tf.ones((8, 5))

    def step() -> Any:
        solved = tf.linalg.solve(a, b)
        return tf.matmul(solved, w, transpose_a=True), also(a)[0]

    compiled = function(step, True)
    trace, graphs = traced(compiled)
    (name,) = {trace.modules[number][0] for number in trace.program[trace.hlo_op >= 0].tolist()}
    data = compiled.experimental_get_compiler_ir()(stage="hlo_serialized")
    assert sum(model_flops.asked(hlo.read(data)).fixed.values()) == 2 * 3 * 8 * 5
    counted, _ = with_xla.count([trace], STEP, graphs, [(-1, name, data)])
    products = [op.costed for op in counted.ops if op.costed.cost.flops]
    (asked,) = [one for one in products if one.op_class == "contraction"]
    assert asked.cost.model_flops == asked.cost.flops == 2 * 3 * 8 * 5
    solving = [one for one in products if one is not asked]
    assert {(one.op_class, one.kind) for one in solving} == {("other", "linear algebra")}
    assert all(one.cost.model_flops == one.cost.flops for one in solving)


def test_a_product_of_rows_that_only_a_run_knows_is_asked_for_as_it_runs_and_says_so() -> None:
    """3 of 4 rows of 8 are positive; XLA multiplies all 4 with 8 x 5."""
    x, w = tf.constant([[1.0] * 8, [-1.0] * 8, [2.0] * 8, [3.0] * 8]), tf.ones((8, 5))
    compiled = function(lambda: tf.boolean_mask(x, x[:, 0] > 0) @ w, True)
    trace, graphs = traced(compiled)
    (name,) = {trace.modules[number][0] for number in trace.program[trace.hlo_op >= 0].tolist()}
    data = compiled.experimental_get_compiler_ir()(stage="hlo_serialized")
    counted, _ = with_xla.count([trace], STEP, graphs, [(-1, name, data)])
    assert counted.unknown == {}
    (product,) = [op.costed.cost for op in counted.ops if op.costed.op_class == "contraction"]
    assert product.model_flops == product.flops == 2 * 4 * 8 * 5
    assert (product.quality, "number of the run" in product.note) == ("assumed", True)


def test_a_node_whose_kernel_is_asynchronous_is_an_op_until_it_is_done() -> None:
    """TensorFlow names no event after it, but one when it starts, and one when it is done."""
    image, boxes = tf.random.uniform((2, 64, 64, 8)), tf.constant([[0.0, 0.0, 1.0, 1.0]] * 16)

    def step(x: Any) -> Any:
        return tf.nn.relu(tf.image.crop_and_resize(tf.tanh(x), boxes, tf.zeros(16, tf.int32), (32, 32)))

    graph = function(step)
    found = ran(lambda: graph(image))
    assert list(found.counted.names_of_ops) == ["Tanh", "CropAndResize", "Relu"]
    (row,) = np.flatnonzero(found.owned.op == 1).tolist()
    (done,) = [
        at
        for at, code in enumerate(found.trace.name.tolist())
        if found.trace.names[code].endswith("ProcessAsync::Done")
    ]
    assert found.owned.end[row] >= found.trace.end[done] > found.trace.start[row]
    assert found.timed.own[1, 0] > 0
    assert found.timed.joined == 1


#: Pairs of results and taps in an image of 7 x 9 for a kernel of 3 x 3 and dilation 2 (`graph.test_space_to_batch`).
DILATED = {"VALID": 3 * 5 * 9, "SAME": 17 * 23}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("padding", DILATED)
def test_a_dilated_convolution_asks_for_what_is_inside_the_image(padding: str, compiled: bool) -> None:
    """TensorFlow makes it one without holes of pieces that are filled up; in both gradients as well."""
    image, kernel = tf.Variable(tf.ones((2, 7, 9, 3))), tf.Variable(tf.ones((3, 3, 3, 4)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            made = tf.nn.depthwise_conv2d(tf.square(image), kernel, (1, 1, 1, 1), padding, dilations=(2, 2))
            loss = tf.reduce_sum(tf.square(made))
        return tape.gradient(loss, [image, kernel])

    assert model_flops_of(step, compiled) == 3 * 2 * 2 * 3 * 4 * DILATED[padding]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_dilated_convolution_of_one_row_asks_for_what_is_inside_it(compiled: bool) -> None:
    """9 results of 3 taps two apart, 4 of which are outside, of one sample: a `reshape` that only adds ones cuts it.

    3 channels become 2 each; in both gradients as well.
    """
    image, kernel = tf.Variable(tf.ones((1, 1, 9, 3))), tf.Variable(tf.ones((1, 3, 3, 2)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            made = tf.nn.depthwise_conv2d(tf.square(image), kernel, (1, 1, 1, 1), "SAME", dilations=(1, 2))
            loss = tf.reduce_sum(tf.square(made))
        return tape.gradient(loss, [image, kernel])

    assert model_flops_of(step, compiled) == 3 * 2 * 3 * 2 * (27 - 4)


@pytest.mark.parametrize("compiled", [False, True])
def test_zeros_in_front_of_a_dilated_convolution_are_not_asked_for(compiled: bool) -> None:
    """As padding that the convolution does: forward, and in both gradients, one of which is cut off again."""
    image, kernel = tf.Variable(tf.ones((2, 7, 9, 3))), tf.Variable(tf.ones((3, 3, 3, 4)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            around = tf.pad(tf.square(image), ((0, 0), (2, 2), (2, 2), (0, 0)))
            made = tf.nn.depthwise_conv2d(around, kernel, (1, 1, 1, 1), "VALID", dilations=(2, 2))
            loss = tf.reduce_sum(tf.square(made))
        return tape.gradient(loss, [image, kernel])

    assert model_flops_of(step, compiled) == 3 * 2 * 2 * 3 * 4 * DILATED["SAME"]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_dilated_convolution_of_one_place_asks_for_its_one_tap(compiled: bool) -> None:
    """Of 3 taps two apart one is inside. The result is one place of an image that is one place high."""
    words, filters = tf.ones((2, 1, 3)), tf.Variable(tf.ones((3, 3, 5)))
    asked = model_flops_of(lambda: tf.nn.convolution(words, filters, padding="SAME", dilations=2), compiled)
    assert asked == 2 * 2 * 3 * 5


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_cut_off_of_a_transposed_convolution_of_one_row_is_not_asked_for(compiled: bool) -> None:
    """1 x 4 places on 3 x 3 taps make 3 x 6 results, of which the edges are cut off.

    One of 3 taps leads to the row that is left; of 4 x 3 pairs along it two are cut off. So for the kernel's gradient.
    """
    image, kernel = tf.ones((2, 1, 4, 3)), tf.Variable(tf.ones((3, 3, 5, 3)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            whole = tf.nn.conv2d_transpose(image, kernel, (2, 3, 6, 5), 1, "VALID")
            loss = tf.reduce_sum(tf.square(tf.slice(whole, (0, 1, 1, 0), (-1, 1, 4, -1))))
        return loss, tape.gradient(loss, kernel)

    assert model_flops_of(step, compiled) == 2 * (2 * 2 * 3 * 5 * 10)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_dilated_convolution_of_sequences_and_one_direction(compiled: bool) -> None:
    """20 results of 3 taps, 4 of them outside; and taps of 7 rows next to each other, of 9 columns two apart."""
    words, filters = tf.ones((2, 20, 3)), tf.Variable(tf.ones((3, 3, 5)))
    assert model_flops_of(lambda: tf.nn.convolution(words, filters, padding="SAME", dilations=2), compiled) == (
        2 * 2 * 3 * 5 * (60 - 4)
    )
    image, kernel, mixing = (
        tf.ones((2, 7, 9, 3)),
        tf.Variable(tf.ones((3, 3, 3, 1))),
        tf.Variable(tf.ones((1, 1, 3, 5))),
    )

    def separable() -> Any:
        return tf.nn.separable_conv2d(image, kernel, mixing, (1, 1, 1, 1), "SAME", dilations=(1, 2))

    assert model_flops_of(separable, compiled) == 2 * 2 * 3 * 19 * 23 + 2 * 2 * 63 * 3 * 5


def for_device(body: Callable[..., Any]) -> Any:
    """Make a function as Keras 2 does for recurrent layers: one of several for the same, of which a call is kept."""
    attributes = {"api_implements": f"{body.__name__}_1", "api_preferred_device": "CPU"}
    return tf.function(body, autograph=False, experimental_attributes=attributes)


def recurrent(x: Any, w: Any) -> Any:
    """Seven products of one row."""
    return tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, x))[1]


def test_a_function_that_grappler_makes_anew_for_a_call_is_known_by_what_it_was() -> None:
    x, w = tf.ones((1, 16)), tf.Variable(tf.eye(16))

    def counting(x: Any, w: Any, start: Any) -> Any:
        return recurrent(x + start, w), tf.reduce_sum(start)

    # A constant argument, which goes into the function, and a result that nobody takes, which goes out of it.
    layer = for_device(counting)
    found = ran(function(lambda: layer(x, w, tf.zeros((1, 16)))[0]))
    assert found.total("flops") == found.total("model_flops") == 7 * 2 * 16 * 16
    assert (found.timed.joined, found.counted.unknown) == (1.0, {})


def test_a_product_and_a_bias_that_grappler_fused_in_such_a_function() -> None:
    x, w, b = tf.ones((1, 16)), tf.Variable(tf.eye(16)), tf.Variable(tf.ones(16))

    def biased(x: Any, w: Any, b: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, tf.nn.bias_add(y @ w, b)), (0, x))[1]

    layer = for_device(biased)
    found = ran(function(lambda: tf.nn.relu(layer(x, w, b))))
    assert found.total("flops") == found.total("model_flops") == 7 * 2 * 16 * 16
    assert found.counted.unknown == {}


def test_of_two_such_functions_that_share_names_nobody_can_tell_which_one_ran() -> None:
    """Their loops have events of the same names: what has other shapes in each is unknown, and named."""
    first, second = for_device(recurrent), for_device(recurrent)
    x, y, w, v = tf.ones((1, 16)), tf.ones((1, 8)), tf.Variable(tf.eye(16)), tf.Variable(tf.eye(8))
    found = ran(function(lambda: (first(x, w), second(y, v))))
    assert found.total("flops") == 0
    assert any(name.endswith("MatMul") for name in found.counted.unknown)
