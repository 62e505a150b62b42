"""Traces of real jitted programs read into ops: what ran, how often, what was asked for, and whose time it is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import compiling
import jax.numpy as jnp

from roofline.core.cost import BY_INDEX
from roofline.costs.counted import PHASES, Counted
from roofline.timing import executor
from roofline.traces.xplane import reader
from roofline.xla import count, model_flops
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo import schedule

STEP = "step"


def traced(run: Callable[[], Any], steps: int = 2) -> reader.XTrace:
    """The trace of a few marked steps, after one that compiles."""
    jax.block_until_ready(run())
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = 0, 2
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=options)
        for number in range(steps):
            with jax.profiler.TraceAnnotation(f"{STEP}#{number}"):
                jax.block_until_ready(run())
        jax.profiler.stop_trace()
        (file,) = Path(folder).rglob("*.xplane.pb")
        return reader.read(file)


def unoptimised(function: Any, *args: Any) -> list[tuple[int, str, bytes]]:
    """The program as JAX hands it to XLA, by its name."""
    return before_xla(lowered(function, *args))


def lowered(function: Any, *args: Any) -> Any:
    return (function if hasattr(function, "lower") else jax.jit(function)).lower(*args)


def before_xla(lowered_function: Any) -> list[tuple[int, str, bytes]]:
    module = lowered_function.compiler_ir("hlo")
    return [(-1, module.as_hlo_module().name, module.as_serialized_hlo_module_proto())]


def ran(function: Any, *args: Any, before: bool = True) -> Counted:
    """What a function does, which is compiled at once, or runs several programs if it is none of JAX's."""
    asked = lowered(function, *args)
    run = asked.compile(compiling.OPTIONS) if hasattr(function, "lower") else function
    return count.count([traced(lambda: run(*args))], STEP, before_xla(asked) if before else ())[0]


def total(counted: Counted, what: str, phase: str | None = None) -> float:
    return sum(
        getattr(op.costed.cost, what)
        for op, at in zip(counted.ops, counted.phase.tolist(), strict=True)
        if phase is None or PHASES[at] == phase
    )


# 2 x 32 x 64 x 64 FLOPs of one product.
PRODUCT = 2 * 32 * 64 * 64
X, W = np.ones((32, 64), np.float32), np.eye(64, dtype=np.float32)


def test_a_scan_of_ten_counts_ten_times() -> None:
    @jax.jit
    def scan(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ w), None), x, None, length=10)[0]

    counted = ran(scan, X, W)
    assert total(counted, "flops") == total(counted, "model_flops") == 10 * PRODUCT
    assert sum((op.costed.cost.functions or {}).get("tanh", 0) for op in counted.ops) == 10 * 32 * 64
    # Times are those of a step, whether the loop ran as thunks of its own or as one kernel.
    assert {op.times for op in counted.ops if op.costed.cost.flops} <= {1, 10}


def test_a_loop_whose_trips_only_a_run_can_tell_counts_them() -> None:
    @jax.jit
    def loop(x: Any, w: Any, n: Any) -> Any:
        return jax.lax.fori_loop(0, n, lambda _, carry: jnp.tanh(carry @ w), x)

    counted = ran(loop, np.ones((512, 64), np.float32), W, 7)
    assert total(counted, "flops") == total(counted, "model_flops") == 7 * 16 * PRODUCT


@pytest.mark.parametrize(("branch", "products"), [(True, 3), (False, 1)])
def test_of_a_conditional_what_ran_counts(branch: bool, products: int) -> None:
    @jax.jit
    def either(x: Any, w: Any, yes: Any) -> Any:
        return jax.lax.cond(yes, lambda y: ((y @ w) @ w) @ w, lambda y: y @ w, x)

    counted = ran(either, np.ones((512, 64), np.float32), W, branch)
    assert total(counted, "flops") == total(counted, "model_flops") == products * 16 * PRODUCT


def test_a_branch_that_hands_on_what_it_got_does_no_work_in_any_turn() -> None:
    """Below the diagonal of a triangle nothing is to be rotated away, in none of five rows."""
    triangle = np.triu(np.ones((6, 6), np.float32))
    counted = ran(jax.scipy.linalg.rsf2csf, triangle, triangle)
    assert counted.unknown == {}
    assert total(counted, "flops") == total(counted, "model_flops") == 0
    below = triangle.copy()
    below[2, 1] = 1
    once = ran(jax.scipy.linalg.rsf2csf, below, triangle)
    assert set(once.unknown) == {"lapack_cgeev_ffi"}


@pytest.mark.skipif(jax.__version_info__ >= (0, 12), reason="its XLA runs this loop as one kernel: nobody sees trips")
def test_a_product_in_a_loop_of_unknown_trips_that_became_a_multiplication_is_asked_for() -> None:
    """An outer product of 300 and 400 numbers in each of 7 trips: 2 x 300 x 400 FLOP, which XLA multiplies and adds."""

    @jax.jit
    def loop(a: Any, b: Any, n: Any) -> Any:
        return jax.lax.fori_loop(0, n, lambda i, c: c + jnp.tanh(a * i) @ b, jnp.zeros((300, 400)))

    counted = ran(loop, np.ones((300, 1), np.float32), np.ones((1, 400), np.float32), 7)
    assert total(counted, "flops") == 0
    assert total(counted, "model_flops") == 7 * 2 * 300 * 400


def test_a_recurrent_net_of_one_sample_asks_for_all_its_products() -> None:
    """As many steps as its length says: forward 2 x 20 x 20, backward as much for the state and for the weight."""

    def loss(w: Any, x: Any) -> Any:
        return (jax.lax.scan(lambda h, y: (jnp.tanh(h @ w + y), None), jnp.zeros((1, 20)), x)[0] ** 2).sum()

    counted = ran(jax.jit(jax.grad(loss)), np.eye(20, dtype=np.float32), np.ones((19, 1, 20), np.float32))
    assert total(counted, "model_flops") == 19 * 3 * 2 * 20 * 20


def test_a_branch_that_did_not_run_has_no_product_to_give() -> None:
    """Attention's products lose their names, and are as large as those of the branch that was not taken."""

    @jax.jit
    def step(x: Any, w: Any, yes: Any, q: Any) -> Any:
        # 2 x 8 x 16 x 16 FLOP where yes, two products of 2 x 16 x 16 x 16 else.
        chosen = jax.lax.cond(yes, lambda y: y[:8] @ w, lambda y: ((y @ w) @ w)[:8], x)
        return chosen, jax.nn.dot_product_attention(q, q, q)

    x, w, q = np.ones((16, 16), np.float32), np.eye(16, dtype=np.float32), np.ones((1, 16, 2, 8), np.float32)
    attention = 2 * (2 * 2 * 16 * 16 * 8)
    for yes, chosen in ((True, 2 * 8 * 16 * 16), (False, 2 * 2 * 16 * 16 * 16)):
        counted = ran(step, x, w, yes, q)
        assert total(counted, "model_flops") == total(counted, "flops") == attention + chosen
        assert all(op.costed.op_class == "contraction" for op in counted.ops if op.costed.cost.model_flops)


def test_a_sort_runs_as_often_as_what_is_beside_it() -> None:
    """XLA's CPU backend writes several events for one sort."""
    numbers = np.arange(1000, dtype=np.float32)[::-1].copy()
    programs = {
        "alone": (jax.jit(jnp.sort), (numbers,), 1),
        "of rows": (jax.jit(lambda x: jnp.sort(x.reshape(10, 100), axis=0) * 2), (numbers,), 1),
        "in a loop": (
            jax.jit(lambda x: jax.lax.scan(lambda c, y: (jnp.sort(c * y), None), x, jnp.ones(5))[0]),
            (numbers,),
            5,
        ),
        "in a loop of unknown trips": (
            jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda i, c: jnp.sort(-c * 2), x)),
            (numbers, 4),
            4,
        ),
    }
    for name, (program, given, times) in programs.items():
        (sort,) = [op for op in ran(program, *given).ops if "sort" in op.costed.kind]
        assert (sort.times, sort.costed.cost.bytes_read) == (times, times * 4000), name


def test_recomputation_is_executed_and_not_asked_for() -> None:
    def block(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w) @ w

    def gradient(x: Any, w: Any) -> Any:
        return jax.value_and_grad(lambda w: (jax.checkpoint(block)(x, w) ** 2).sum())(w)

    (_, _, data) = unoptimised(gradient, X, W)[0]
    module = hlo.read(data)
    # Forward: x w and tanh(..) w. Backward: x w again, which nobody asked for; the gradients of w, twice, and of tanh.
    assert sum(model_flops.asked(module).fixed.values()) == 5 * PRODUCT
    everything = [unit for unit in schedule.schedule(module) if not unit.control]
    products = [flops for unit in everything for _, flops in schedule.contractions(module, unit.instruction)]
    assert sum(products) == 6 * PRODUCT


def test_what_only_the_backward_pass_computes_is_asked_for_once() -> None:
    def block(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w) @ w

    @jax.jit
    def gradient(x: Any, w: Any) -> Any:
        return jax.grad(lambda w: jax.checkpoint(block)(x, w).sum())(w)

    # Of a sum the gradient needs no value: both forward products are dropped, x w is done for the backward pass alone.
    counted = ran(gradient, X, W)
    assert total(counted, "model_flops") == total(counted, "flops") == 4 * PRODUCT


@pytest.mark.parametrize("inner", [jax.checkpoint, lambda block: block], ids=["in a checkpoint", "once"])
def test_what_a_checkpoint_in_a_checkpoint_does_again_is_asked_for_once(inner: Any) -> None:
    """Two groups of three layers of two products: the checkpoint of a group repeats each layer, its own once more."""

    def layer(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w) @ w, None

    @jax.checkpoint
    def group(x: Any, w: Any) -> Any:
        return jax.lax.scan(inner(layer), x, w)[0], None

    @jax.jit
    def gradient(x: Any, w: Any) -> Any:
        return jax.value_and_grad(lambda x, w: (jax.lax.scan(group, x, w)[0] ** 2).sum(), (0, 1))(x, w)

    x = np.ones((6, 10), np.float32)
    counted = ran(gradient, x, np.ones((2, 3, 10, 10), np.float32))
    layers = 2 * 3 * 2 * 2 * 6 * 10 * 10
    # Forward, and of each product the gradients of both factors.
    assert total(counted, "model_flops") == 3 * layers
    assert total(counted, "flops") > 3 * layers


def test_a_product_that_became_a_multiplication_keeps_its_class_and_model_flops() -> None:
    @jax.jit
    def outer(a: Any, b: Any) -> Any:
        return jnp.tanh(a @ b) + 1.0

    a, b = np.ones((300, 1), np.float32), np.ones((1, 400), np.float32)
    counted = ran(outer, a, b)
    # One product of K = 1: 2 x 300 x 400 FLOPs asked for. XLA multiplies instead, which is vector work.
    (op,) = [op for op in counted.ops if op.costed.op_class == "contraction"]
    assert op.costed.cost.model_flops == total(counted, "model_flops") == 2 * 300 * 400
    assert total(counted, "flops") == 0
    assert op.costed.cost.vector_flops >= 300 * 400


def test_phases_and_scopes_of_a_training_step() -> None:
    def loss(w: Any, x: Any) -> Any:
        with jax.named_scope("layer"):
            y = jnp.tanh(x @ w)
        with jax.named_scope("loss"):
            return (y**2).mean()

    @jax.jit
    def train(w: Any, x: Any) -> Any:
        gradient = jax.grad(loss)(w, x)
        with jax.named_scope("optimizer"):
            return w - 0.1 * gradient

    counted = ran(train, W, X)
    assert total(counted, "model_flops", "forward") == PRODUCT
    assert total(counted, "model_flops", "backward") == PRODUCT  # x needs no gradient
    assert total(counted, "model_flops", "optimizer") == 0
    assert {"layer", "optimizer"} <= set(counted.scopes)
    update = [op for op, at in zip(counted.ops, counted.phase.tolist(), strict=True) if PHASES[at] == "optimizer"]
    assert update
    # The new weights are the next step's: the buffer that is written is the one that is read.
    assert set(update[-1].writes) <= set(update[-1].reads)


def test_an_optimizer_that_no_scope_names_is_a_phase_and_a_scope() -> None:
    @jax.jit
    def train(w: Any, b: Any, x: Any) -> Any:
        to_w, to_b = jax.grad(lambda w, b: (jnp.tanh(x @ w + b) ** 2).mean(), (0, 1))(w, b)
        return w - 0.1 * to_w, b - 0.1 * to_b

    counted = ran(train, W, np.zeros(W.shape[1], np.float32), X)
    assert total(counted, "model_flops", "forward") == total(counted, "model_flops", "backward") == PRODUCT
    places = [(PHASES[at], counted.scopes[scope]) for at, scope in zip(counted.phase, counted.scope, strict=True)]
    update = [op for op, at in zip(counted.ops, places, strict=True) if at == ("optimizer", "optimizer")]
    # It writes the new weights, and reads the old ones.
    assert any(one.costed.cost.bytes_written == W.nbytes for one in update)
    assert total(counted, "flops", "optimizer") == 0


@pytest.mark.parametrize("jitted", [True, False])
def test_an_optimizer_in_programs_of_its_own_is_one_too(jitted: bool) -> None:
    to_both = jax.jit(jax.grad(lambda both, x: (jnp.tanh(x @ both[0] + both[1]) ** 2).mean()))

    def descend(both: Any, changes: Any) -> Any:
        return jax.tree.map(lambda w, g: w - 0.1 * g, both, changes)

    update = jax.jit(descend) if jitted else descend
    both, x = jax.tree.map(jnp.asarray, ((W, np.zeros(W.shape[1], np.float32)), X))
    counted = ran(lambda: update(both, to_both(both, x)), before=False)
    # In one program or two operations on each array: W is scaled by a number and subtracted.
    assert total(counted, "vector_flops", "optimizer") == 2 * (W.size + W.shape[1])
    assert total(counted, "flops", "optimizer") == 0


def test_without_the_unoptimised_program_the_optimised_one_is_asked_and_it_is_said() -> None:
    counted = ran(jax.jit(lambda x, w: x @ w), X, W, before=False)
    assert total(counted, "model_flops") == PRODUCT
    assert counted.flags == ("optimised-only",)
    assert ran(jax.jit(lambda x, w: x @ w), X, W).flags == ()


def test_the_times_of_all_ops_add_up_and_everything_is_joined() -> None:
    @jax.jit
    def net(x: Any, w: Any) -> Any:
        for _ in range(8):
            x = jax.nn.softmax(jnp.tanh(x @ w) @ w)
        return x

    x = np.ones((256, 64), np.float32)
    trace = traced(lambda: net(x, W), steps=3)
    counted, owned = count.count([trace], STEP)
    steps = executor.time_steps(trace, owned[0], len(counted.ops), STEP, 0.0)
    assert len(steps) == 3
    for step in steps:
        assert step.joined == 1.0
        assert step.unmatched == {}
        assert step.unseen == 0
        # wall = shares + idle, by construction of the sweep line; shares = own - overlap
        shares = step.own[:, 0] - step.overlap
        assert shares.sum() + step.idle[0] == pytest.approx(step.walls[0], rel=1e-9)
        assert (step.overlap >= -1e-12).all()
        assert sum(step.causes.values()) == pytest.approx(step.idle[0])


def test_a_program_without_an_event_is_no_op() -> None:
    trace = traced(lambda: jnp.zeros(()))
    counted, owned = count.count([trace], "no-such-step")
    assert counted.ops == ()
    assert executor.time_steps(trace, owned[0], 0, "no-such-step", 0.0) == []


def test_an_instruction_that_no_program_has_is_lost_and_named() -> None:
    trace = traced(lambda: jnp.asarray(X) @ W)
    without = reader.XTrace(**{name: getattr(trace, name) for name in trace.__slots__ if name != "modules"}, modules={})
    counted, owned = count.count([without], STEP)
    assert counted.ops == ()
    (step, *_) = executor.time_steps(without, owned[0], 0, STEP, 0.0)
    assert step.joined == 0.0
    assert step.unmatched
    assert step.extra == tuple(step.unmatched)
    assert step.own.sum() > 0


def test_products_of_a_called_function_keep_their_names() -> None:
    dense = jax.jit(lambda x, w: x @ w)

    def gradient(w: Any, x: Any) -> Any:
        return jax.grad(lambda w: (dense(x, w) ** 2).sum())(w)

    (_, _, data) = unoptimised(gradient, W, X)[0]
    # A function that a jitted one calls has names of its own, to be put behind the call's: once, not twice.
    names = list(model_flops.asked(hlo.read(data)).fixed)
    assert len(names) == 2
    assert all(name.count("dot_general") + name.endswith("/transpose") <= 1 for name in names)

    counted = ran(jax.jit(gradient), W, X)
    assert total(counted, "model_flops", "forward") == total(counted, "model_flops", "backward") == PRODUCT


def test_what_a_convolution_asks_for_stays_in_its_phase_where_xla_lost_its_name() -> None:
    numbers = ("NHWC", "HWIO", "NHWC")
    convolve = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers))
    step = jax.jit(jax.grad(lambda w, x: (convolve(x, w) ** 2).sum()))
    counted = ran(step, np.ones((3, 3, 3, 8), np.float32), np.ones((2, 16, 16, 3), np.float32))
    # Of 16 x 3 taps in each direction 2 lie in the padding: 2 x 2 x 46 x 46 x 3 x 8.
    once = 2 * 2 * 46 * 46 * 3 * 8
    assert total(counted, "model_flops", "forward") == total(counted, "model_flops", "backward") == once
    assert total(counted, "flops") == 2 * once


def test_programs_that_a_step_runs_several_times_count_as_often() -> None:
    one, two = jax.jit(lambda x, w: x @ w), jax.jit(lambda x, w: jnp.tanh(x @ w) @ w)
    trace = traced(lambda: (one(X, W), two(X, W), one(X, W)))
    # Both are called `<lambda>` and take the same arguments: which of them the unoptimised one was is not known.
    for before in ([], unoptimised(one, X, W)):
        counted, _ = count.count([trace], STEP, before)
        assert total(counted, "flops") == total(counted, "model_flops") == 4 * PRODUCT
        assert counted.flags == ("optimised-only",)


def test_a_program_of_nothing_but_a_loop_counts_as_often_as_it_runs() -> None:
    loop = jax.jit(lambda x, w: jax.lax.fori_loop(0, 4, lambda _, y: jnp.tanh(y @ w), x))
    x = np.ones((512, 64), np.float32)
    counted, _ = count.count([traced(lambda: [loop(x, W) for _ in range(3)])], STEP, unoptimised(loop, x, W))
    assert total(counted, "flops") == total(counted, "model_flops") == 3 * 4 * 16 * PRODUCT


def test_a_program_of_the_same_name_and_other_shapes_is_no_twin() -> None:
    function = jax.jit(lambda x, w: x @ w)
    counted, _ = count.count([traced(lambda: function(X, W))], STEP, unoptimised(function, X[:16], W))
    assert total(counted, "model_flops") == PRODUCT  # and not that of 16 rows
    assert counted.flags == ("optimised-only",)


def test_a_loop_over_layers_touches_the_weights_of_all() -> None:
    layers, width = 6, 128

    @jax.jit
    def scan(x: Any, ws: Any) -> Any:
        return jax.lax.scan(lambda y, w: (jnp.tanh(y @ w), None), x, ws)[0]

    counted = ran(scan, np.ones((256, width), np.float32), np.ones((layers, width, width), np.float32))
    stack = layers * width * width * 4
    sizes = [size for op in counted.ops for _, _, size in op.costed.reads]
    # One layer at a time, and another one each time: what a step reads of the stack is the stack.
    assert stack in sizes or layers not in {op.times for op in counted.ops}
    assert max(sizes) <= stack


def test_a_product_with_a_one_hot_matrix_is_asked_for_nothing() -> None:
    """12 indices of 11 rows of 4, and a product of 4 by 4 of the same name: 2*12*11*4 FLOP run each way, not asked for.

    XLA gives the gradient of the table another name.
    """
    table, weight = jnp.ones((11, 4)), jnp.ones((4, 4))
    indices = jnp.arange(12) % 11

    @jax.jit
    def step(table: Any, weight: Any) -> Any:
        def loss(table: Any, weight: Any) -> Any:
            return jnp.sum(jnp.tanh(jax.nn.one_hot(indices, 11) @ table) @ weight)

        return jax.grad(loss, argnums=(0, 1))(table, weight)

    counted = ran(step, table, weight)
    picks, product = 2 * 12 * 11 * 4, 2 * 12 * 4 * 4
    noted = [op.costed.cost for op in counted.ops if op.costed.cost.note == BY_INDEX]
    assert [(cost.model_flops, cost.flops) for cost in noted] == [(0, picks)] * 2
    assert total(counted, "model_flops") == 2 * product  # of the second product itself, its gradients need nothing


def test_the_gradients_of_a_branch_are_of_that_branch() -> None:
    """One product and the gradient of its weight, where the other branch has products as large: 2 x 72 x 4 x 4 each."""

    def loss(weights: Any, x: Any, yes: Any) -> Any:
        a, b, c = weights
        y = jax.lax.cond(yes, lambda x: jnp.tanh(x @ a), lambda x: jax.nn.relu(x @ b) @ c, x)
        return jnp.mean(y**2)

    weights, x = [np.ones((4, 4), np.float32)] * 3, np.ones((72, 4), np.float32)
    counted = ran(jax.jit(jax.grad(loss)), weights, x, True)
    assert total(counted, "flops") == total(counted, "model_flops") == 2 * (2 * 72 * 4 * 4)


def test_a_product_of_a_loop_is_none_of_a_branch() -> None:
    """A loop of 3 rounds, and behind it a branch, on one sample: 2 x 8 x 8 FLOP a product, with two gradients each.

    XLA makes a product's gradient that is an outer product a multiplication, and the other one loses its name.
    """

    def loss(weights: Any, x: Any, yes: Any) -> Any:
        a, b, c = weights
        x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, a)
        y = jax.lax.cond(yes, lambda x: jnp.tanh(x @ b), lambda x: jax.nn.relu(x @ c), x)
        return jnp.mean(y**2)

    weights = [np.ones((3, 8, 8), np.float32), np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)]
    counted = ran(jax.jit(jax.grad(loss, (0, 1))), weights, np.ones((1, 8), np.float32), True)
    product = 2 * 8 * 8
    assert total(counted, "model_flops", "forward") == 3 * product + product
    assert total(counted, "model_flops", "backward") == 2 * (3 * product + product)


def test_branches_of_the_same_name_are_told_apart() -> None:
    """Of 5 or 7 hidden units, or none, on one sample, whose outer products XLA makes multiplications."""

    def either(yes: Any, weights: Any, x: Any) -> Any:
        short, up, down = weights
        return jax.lax.cond(yes, lambda x: jnp.tanh(x @ short), lambda x: jax.nn.relu(x @ up) @ down, x)

    def loss(weights: Any, x: Any, first: Any, second: Any) -> Any:
        return jnp.mean(either(second, weights[1], either(first, weights[0], x)) ** 2)

    def made(hidden: int) -> list[Any]:
        return [np.ones(shape, np.float32) for shape in ((8, 8), (8, hidden), (hidden, 8))]

    gradients = jax.jit(jax.grad(loss, (0, 1)))
    for first, second in ((True, True), (True, False), (False, True)):
        counted = ran(gradients, [made(5), made(7)], np.ones((1, 8), np.float32), first, second)
        asked = [2 * 8 * 8 if yes else 2 * 2 * 8 * hidden for yes, hidden in ((first, 5), (second, 7))]
        assert total(counted, "model_flops", "forward") == sum(asked), (first, second)
        assert total(counted, "model_flops", "backward") == 2 * sum(asked), (first, second)


def test_a_product_outside_of_branches_is_none_of_a_branch_that_did_not_run() -> None:
    """Of two branches of one name the second did not run, and has a product as large as that of a convolution behind.

    XLA loses the name of the gradient of the convolution's kernel.
    """

    def loss(weights: Any, x: Any, first: Any, second: Any) -> Any:
        short, across, wide, kernel = weights
        x = jax.lax.cond(first, lambda x: jnp.tanh(x @ short), jax.nn.relu, x) @ across
        x = jax.lax.cond(second, lambda x: jnp.tanh(x @ wide), jax.nn.relu, x).reshape(2, 6, 2)
        numbers = ("NWC", "WIO", "NWC")
        return jnp.mean(jax.lax.conv_general_dilated(x, kernel, (2,), "VALID", dimension_numbers=numbers) ** 2)

    weights = [np.ones(shape, np.float32) for shape in ((8, 8), (8, 12), (12, 12), (3, 2, 12))]
    counted = ran(jax.jit(jax.value_and_grad(loss)), weights, np.ones((2, 8), np.float32), True, False)
    short, across, convolution = 2 * 2 * 8 * 8, 2 * 2 * 8 * 12, 2 * 2 * (2 * 3) * 2 * 12
    assert total(counted, "model_flops", "forward") == short + across + convolution
    assert total(counted, "model_flops", "backward") == short + 2 * (across + convolution)


def test_a_product_that_a_branch_gives_to_the_host_alone_is_asked_for() -> None:
    def step(x: Any, yes: Any) -> Any:
        jax.lax.cond(yes, lambda: jax.debug.callback(lambda product: None, x @ x), lambda: None)
        return x + 1

    counted = ran(jax.jit(step), np.ones((8, 8), np.float32), True)
    costs = [op.costed.cost for op in counted.ops if op.costed.cost.flops]
    assert [(cost.flops, cost.model_flops) for cost in costs] == [(2 * 8**3, 2 * 8**3)]


@pytest.mark.parametrize("wrap", [lambda function: function, jax.checkpoint], ids=["kept", "made again"])
def test_one_hot_rows_that_a_repeated_function_is_given_are_no_product(wrap: Any) -> None:
    """6 rows of 16, whose product picks 6 of 8; then a product of 6 x 8 with 8 x 8, and its two gradients."""

    def loss(table: Any, w: Any, rows: Any) -> Any:
        picked = wrap(lambda rows, table: jnp.sin(rows @ table))(jax.nn.one_hot(rows, 16), table)
        return jnp.sum(jnp.tanh(picked @ w) ** 2)

    arguments = np.ones((16, 8), np.float32), np.ones((8, 8), np.float32), np.arange(6)
    counted = ran(jax.jit(jax.value_and_grad(loss, (0, 1))), *arguments)
    assert total(counted, "model_flops") == 3 * 2 * 6 * 8 * 8
