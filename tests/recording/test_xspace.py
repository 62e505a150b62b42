"""A step recorded in this process through the profilers of JAX and TensorFlow: identities, counts, plans."""

from __future__ import annotations

import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from shared_cases import case

jax = pytest.importorskip("jax")
import jax.numpy as jnp

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tf = pytest.importorskip("tensorflow")
    from roofline.tensorflow import framework as tensorflow_framework

from roofline.analysis.analysis import Analysis, analyze
from roofline.core.device import Device
from roofline.core.executor import ASLEEP, CALLS, COMPILING, ON_CORE, QUEUED, QUEUED_WORKER, WAITED
from roofline.core.schema import SCHEMA, Profile
from roofline.core.step import Step, scope
from roofline.errors import MeasurementError
from roofline.recording import contention
from roofline.recording import record as measurement
from roofline.recording.recording import Plan, Recording
from roofline.recording.xspace import probes, recorder
from roofline.tensorflow.recorder import TensorFlowRecorder
from roofline.xla import jax as jax_framework
from roofline.xla.jax import Jax
from roofline.xla.recorder import JaxRecorder

# 2 x 32 x 64 x 64 FLOPs of one product.
PRODUCT = 2 * 32 * 64 * 64
KINDS = ("jax", "tensorflow", "tensorflow, compiled")
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module", autouse=True)
def _no_ceilings() -> Iterator[None]:
    """What is not tested here, and takes time: bandwidth, most evaluations of functions, most ops without work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "bandwidth", lambda plan, threads: {})
        patch.setattr(probes, "FUNCTION_ELEMENTS", (1024,))
        patch.setattr(probes, "TRIVIAL_RUNS", 3)
        for framework in (jax_framework, tensorflow_framework):
            patch.setattr(framework, "TRIVIAL_OPS", 20)
        yield
    recorded.cache_clear()


def native_jax() -> Any:
    return JaxRecorder().framework(Step(run=lambda: None))


def native_tensorflow(compiled: bool) -> Any:
    return TensorFlowRecorder(("yes",)).framework(Step(run=lambda: None, switches={"jit": "yes" if compiled else "no"}))


def jax_step() -> Step:
    """Forward x w and tanh(..) w, backward their gradients but for that of x, an update in place."""

    def loss(w: Any, x: Any) -> Any:
        with scope("layer"):
            return ((jnp.tanh(x @ w) @ w) ** 2).mean()

    def train(w: Any, x: Any) -> Any:
        gradient = jax.grad(loss)(w, x)
        with scope("optimizer"):
            return w - 0.1 * gradient

    step, state, x = jax.jit(train), [jnp.eye(64)], jnp.ones((32, 64))

    def run() -> Any:
        state[0] = step(state[0], x)
        return state[0]

    return Step(run=run, mode="train", parameters=4096, trainable=4096, samples=32, batch=32)


def tensorflow_step(compiled: bool) -> Step:
    """The same."""
    w, x = tf.Variable(tf.eye(64)), tf.ones((32, 64))

    def train() -> Any:
        with tf.GradientTape() as tape, scope("layer"):
            loss = tf.reduce_mean((tf.tanh(x @ w) @ w) ** 2)
        gradient = tape.gradient(loss, w)
        with scope("optimizer"):
            w.assign_sub(0.1 * gradient)
        return loss

    function = tf.function(train, jit_compile=compiled, autograph=False)
    return Step(run=function, mode="train", parameters=4096, trainable=4096, samples=32, batch=32)


def make(kind: str) -> tuple[Step, Any]:
    if kind == "jax":
        return jax_step(), native_jax()
    compiled = kind.endswith("compiled")
    return tensorflow_step(compiled), native_tensorflow(compiled)


def record(kind: str, **plan: Any) -> Recording:
    step, framework = make(kind)
    return recorder.record(step, Plan(device="cpu", threads=1, steps=3, **plan), lambda text: None, framework)


def analysed(recording: Recording, backend: str) -> Analysis:
    device = Device(name="none", kind="cpu", ceilings={}).merge_measurements(recording.ceilings)
    profile = Profile(
        schema=SCHEMA, model="m", backend=backend, mode=recording.mode, size="", precision="default", command="",
        date="2026-01-01", device=device, wall=recording.wall, scopes=recording.scopes, phases=recording.phases,
        blocks=recording.blocks, signatures=recording.signatures, ops=recording.ops, kernels=recording.kernels,
        profiled=recording.profiled, flags=recording.flags,
    )  # fmt: skip
    return analyze(profile)


#: How long recording took, by kind [s].
took: dict[str, float] = {}


@cache
def recorded(kind: str) -> tuple[Recording, Analysis]:
    begin = time.perf_counter()
    recording = record(kind, profiled_steps=3, in_process=True)
    took[kind] = time.perf_counter() - begin
    return recording, analysed(recording, kind.partition(",")[0])


@every_kind
def test_what_the_step_does_is_counted_by_phase(kind: str) -> None:
    _, analysis = recorded(kind)
    forward, backward = analysis.products["forward"], analysis.products["backward"]
    # Backward: the gradient of the second product's both inputs, and of the first one's weights.
    assert (forward.model, backward.model) == (2 * PRODUCT, 3 * PRODUCT)
    assert forward.executed + backward.executed == 5 * PRODUCT
    assert "optimizer" not in analysis.products
    assert analysis.total.model_flops == 5 * PRODUCT


@every_kind
def test_the_parts_add_up_to_the_wall(kind: str) -> None:
    recording, analysis = recorded(kind)
    assert recording.profiled is not None
    assert recording.profiled.joined == 1.0
    assert "unjoined" not in recording.flags
    total = analysis.total
    seconds = sum(one.seconds for one in analysis.by("class").values())
    assert seconds + analysis.gap == pytest.approx(analysis.wall, rel=1e-3)
    assert total.floor + total.loss + total.uncosted - total.overlap == pytest.approx(seconds, rel=1e-3, abs=1e-8)
    assert sum(one.seconds for one in analysis.by("phase").values()) == pytest.approx(seconds)
    assert analysis.coverage["bytes"] == pytest.approx(1.0)
    # Of each profiled step: what is corrected is busy or idle.
    for step, (corrected, idle) in enumerate(zip(recording.profiled.corrected, recording.profiled.idle, strict=True)):
        own = sum(op.own_ns[step] for op in recording.ops) * 1e-9
        assert idle <= corrected <= own + idle + 1e-7


@every_kind
def test_the_executor_and_its_launch_floor_are_known(kind: str) -> None:
    recording, analysis = recorded(kind)
    mechanism = "tensorflow-graph" if kind == "tensorflow" else "xla-thunk"
    assert recording.profiled is not None
    assert recording.profiled.mechanism == mechanism
    floor = recording.ceilings[f"launch.{mechanism}"]
    # The least of many events, one after the other: all of them lie in the time that recording took.
    events = int(floor.source.split()[-2])
    assert events > probes.TRIVIAL_RUNS
    assert 0 < events * floor.value < took[kind]
    assert analysis.device.rate(f"launch.{mechanism}") == floor.value
    assert recording.ceilings["function.tanh"].value > 0


@every_kind
def test_what_was_run_and_how_is_kept(kind: str) -> None:
    recording, _ = recorded(kind)
    assert "in_process" in recording.flags
    # The process was not told to keep unoptimised programs: model FLOPs of XLA's are derived, and it is said.
    assert ("optimised-only" in recording.flags) == (kind != "tensorflow")
    assert len(recording.wall.steps) == 3
    assert recording.wall.first is not None
    assert {"layer"} <= {name.partition("/")[0] for name in recording.scopes}
    assert "optimizer" in recording.blocks
    assert (recording.parameters, recording.samples, recording.batch, recording.seq) == (4096, 32, 32, None)
    assert ("jax" if kind == "jax" else "tensorflow") in recording.versions
    assert recording.environment["threads"] == "1"
    assert recording.memory.resident
    assert recording.memory.peak is None  # the memory of the process is not the step's
    assert recording.conditions["page_faults_per_step"] >= 0


def test_what_a_host_does_that_runs_ahead_of_its_ops_is_kept() -> None:
    # 20 products of 256 x 256, which no other thread of the process waits for: the host is done long before them.
    x = jnp.eye(256)
    many = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, y: y @ x, x))
    plan = Plan(device="cpu", threads=1, steps=3, profiled_steps=1, in_process=True)
    found = recorder.record(Step(run=lambda: many(x)), plan, lambda text: None, native_jax())
    on_core, waited = found.conditions[ON_CORE], found.conditions[WAITED]
    assert 0 < on_core < waited < max(found.wall.steps)
    # One that waits itself leaves nothing to wait for.
    found = recorder.record(Step(run=lambda: many(x).block_until_ready()), plan, lambda text: None, native_jax())
    assert found.conditions[WAITED] < waited
    # A function of TensorFlow has ended when it returns; it says how often Python called one.
    assert not {ON_CORE, WAITED} & recorded("tensorflow")[0].conditions.keys()
    assert recorded("tensorflow")[0].conditions[CALLS] == 1


@every_kind
def test_a_host_that_sleeps_and_threads_that_want_a_core_are_told_apart(kind: str) -> None:
    """Before its ops each step sleeps for 5 ms; what runs them on other threads is waited for, which is no sleep."""
    step, framework = make(kind)

    def sleeps() -> Any:
        time.sleep(0.005)
        return step.run()

    plan = Plan(device="cpu", threads=1, steps=3, profiled_steps=1, in_process=True)
    found = recorder.record(replace(step, run=sleeps), plan, lambda text: None, framework).conditions
    assert 0.00495 < found[ASLEEP] < 0.015
    usual = recorded(kind)[0].conditions
    assert usual[ASLEEP] < 1e-3
    known = contention._queued() is not None
    assert {QUEUED, QUEUED_WORKER} & usual.keys() == ({QUEUED, QUEUED_WORKER} if known else set())


def test_an_op_of_a_loop_says_how_often_it_runs() -> None:
    """48 turns of a product in each framework's own loop are one op with the work of all."""
    x = jnp.eye(64)
    jitted = jax.jit(lambda x: jax.lax.fori_loop(0, 48, lambda _, y: jnp.tanh(y @ x), x))
    w = tf.eye(64)
    graph = tf.function(
        lambda: tf.while_loop(lambda i, y: i < 48, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, w)), autograph=False
    )
    for run, framework in ((lambda: jitted(x), native_jax()), (graph, native_tensorflow(compiled=False))):
        found = counted(run, framework)
        (times,) = {op.times for op in found.ops if found.signatures[op.signature].cost.flops}
        assert times == 48
        flops = sum(found.signatures[op.signature].cost.flops or 0.0 for op in found.ops)
        assert flops == 48 * 2 * 64**3


@every_kind
def test_counting_alone_measures_no_ops(kind: str) -> None:
    recording = record(kind, count_only=True)
    assert recording.profiled is None
    assert recording.ceilings == {}
    assert all(op.own_ns == () for op in recording.ops)
    assert "page_faults_per_step" not in recording.conditions
    analysis = analysed(recording, "jax")
    assert analysis.total.model_flops == 5 * PRODUCT


def test_plain_steps_alone_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Jax, run: Callable[[], None]) -> bytes:
        raise AssertionError("a plain run was profiled")

    monkeypatch.setattr(Jax, "profiled", refuse)
    recording = record("jax", plain_only=True)
    assert len(recording.wall.steps) == 3
    assert (recording.profiled, recording.ops, recording.flags) == (None, (), ())


def test_a_step_of_nodes_and_instructions_has_the_floor_of_the_faster_executor() -> None:
    x, w = tf.ones((32, 64)), tf.eye(64)
    compiled = tf.function(lambda x: tf.tanh(x @ w), jit_compile=True, autograph=False)
    graph = tf.function(lambda x: tf.nn.relu(x @ w), autograph=False)
    framework = native_tensorflow(compiled=False)
    step, plan = Step(run=lambda: compiled(graph(x))), Plan(device="cpu", threads=1, steps=3, profiled_steps=3)
    recording = recorder.record(step, plan, lambda text: None, framework)
    # A node takes microseconds where an instruction takes nanoseconds: its floor would stand above instructions.
    assert recording.profiled is not None
    assert recording.profiled.mechanism == "xla-thunk"
    assert set(recording.ceilings) >= {"launch.xla-thunk", "function.tanh"}
    assert analysed(recording, "tensorflow").total.model_flops == 2 * PRODUCT


def test_a_step_that_returns_nothing_is_waited_for() -> None:
    step, x, state = (
        jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, y: jnp.tanh(y @ x), x)),
        jnp.ones((128, 128)),
        [],
    )

    def run() -> None:
        state[:] = [step(x)]

    framework = native_jax()
    run()
    for _ in range(3):
        framework.wait(run())
        assert state[0].is_ready()


def test_a_step_without_a_compiled_program_is_an_error() -> None:
    with pytest.raises(MeasurementError, match="ran no program of JAX"):
        recorder.record(Step(run=lambda: None), Plan(device="cpu", threads=1, steps=3), lambda text: None, native_jax())


def test_what_a_step_compiles_anew_is_timed() -> None:
    """A function that each step jits is compiled each time, and one that was jitted before is not."""
    x, framework = jnp.ones((64, 64)), native_jax()
    jitted = jax.jit(lambda x: jnp.tanh(x @ x))
    plan = Plan(device="cpu", threads=1, steps=3, plain_only=True)
    once = recorder.record(Step(run=lambda: jitted(x)), plan, lambda text: None, framework)
    inside = []

    def compiles() -> Any:
        begin = time.perf_counter()
        y = jax.jit(lambda x: jnp.tanh(x @ x))(x)
        inside.append(time.perf_counter() - begin)
        return y

    anew = recorder.record(Step(run=compiles), plan, lambda text: None, framework)
    assert once.conditions["compiling_seconds_per_step"] == 0
    # Compiling lies inside the steps, of which at least the three that are timed count: an order, not a duration.
    assert 0 < len(anew.wall.steps) * anew.conditions["compiling_seconds_per_step"] < sum(inside)


def test_tracing_is_timed_where_nothing_is_compiled_after_it() -> None:
    """JAX's shapes of a function are found by tracing it alone; a function in it is no second tracing."""
    inner = jax.jit(lambda x: jnp.tanh(x @ x))
    framework = native_jax()
    framework.wait(inner(jnp.ones((8, 8))))
    before, begin = framework.compiling(), time.perf_counter()
    jax.jit(lambda x: inner(inner(x)) + 1).trace(jnp.ones((16, 16)))
    assert 0 < framework.compiling() - before < time.perf_counter() - begin


def graphs_anew(x: Any) -> Callable[[], Any]:
    """A number of Python's is no argument of a graph but a part of it."""
    numbers = itertools.count()
    traced = tf.function(lambda x, number: tf.tanh(x @ x) + float(number), autograph=False)
    return lambda: traced(x, next(numbers))


def made_anew(x: Any) -> Callable[[], Any]:
    return lambda: tf.function(lambda x: tf.tanh(x @ x), autograph=False)(x)


def shapes_anew(x: Any) -> Callable[[], Any]:
    sizes = itertools.count(1)
    traced = tf.function(lambda x: tf.tanh(x @ tf.transpose(x)), autograph=False)
    return lambda: traced(x[: next(sizes) % 60 + 4])


@pytest.mark.parametrize(
    "make",
    # Of another shape as of another number: the same function has a further graph.
    [graphs_anew, made_anew, pytest.param(shapes_anew, marks=pytest.mark.thorough)],
)
def test_graphs_that_a_step_builds_anew_are_timed(make: Callable[[Any], Callable[[], Any]]) -> None:
    x = tf.eye(64)
    plan = Plan(device="cpu", threads=1, steps=4, plain_only=True)
    recording = recorder.record(Step(run=make(x)), plan, lambda text: None, native_tensorflow(compiled=False))
    assert 0 < 4 * recording.conditions[COMPILING] < sum(recording.wall.steps)
    once = tf.function(lambda x: tf.tanh(x @ x), autograph=False)
    recording = recorder.record(Step(run=lambda: once(x)), plan, lambda text: None, native_tensorflow(compiled=False))
    assert recording.conditions[COMPILING] == 0


def test_how_long_xla_compiles_is_unknown_where_it_writes_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's function asks for XLA, which the traces show: graphs alone are not all that was made."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    x, once = tf.eye(64), tf.function(lambda x: tf.tanh(x @ x), autograph=False, jit_compile=True)
    plan = Plan(device="cpu", threads=1, steps=3, profiled_steps=1)
    recording = recorder.record(Step(run=lambda: once(x)), plan, lambda text: None, native_tensorflow(compiled=False))
    assert COMPILING not in recording.conditions
    assert native_tensorflow(compiled=True).compiling() is None


# The test of JAX and those of graphs above hold what these show.
@pytest.mark.thorough
@pytest.mark.parametrize(("file", "kind"), [("t03_jax_retrace.py", "jax"), ("t10_tf_retrace.py", "tensorflow")])
def test_reported_programs_that_compile_or_trace_in_each_step(file: str, kind: str) -> None:
    plan = Plan(device="cpu", threads=1, steps=3, plain_only=True)
    for function, compiles in (("make_anew", True), ("make_cached", False)):
        framework = native_jax() if kind == "jax" else native_tensorflow(compiled=False)
        recording = recorder.record(Step(run=case(file, function)), plan, lambda text: None, framework)
        assert (recording.conditions[COMPILING] > 0) == compiles


def test_threads_that_a_program_set_are_those_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow takes them before its first op alone, which another test ran."""
    framework = native_tensorflow(compiled=False)
    made = recorder.XSpaceStepRecorder(Plan(device="cpu", threads=2), framework)
    assert made.environment()["threads"] == "2"
    monkeypatch.setattr(tf.config.threading, "get_intra_op_parallelism_threads", lambda: 16)
    assert made.environment()["threads"] == "16"


@pytest.mark.parametrize(("compiled", "jit"), [((False, False), "off"), ((True, False), "in part")])
def test_what_xla_did_not_compile_is_not_called_compiled(compiled: tuple[bool, bool], jit: str) -> None:
    x, w = tf.ones((32, 64)), tf.eye(64)
    one, other = (tf.function(lambda x: tf.tanh(x @ w), jit_compile=xla, autograph=False) for xla in compiled)
    # What is asked for is XLA, as by the backend tensorflow-xla of a user's step, which has no switch that says more.
    framework = TensorFlowRecorder((None,)).framework(Step(run=lambda: None))
    plan = Plan(device="cpu", threads=1, steps=3, profiled_steps=1)
    recording = recorder.record(Step(run=lambda: other(one(x))), plan, lambda text: None, framework)
    assert recording.switches["jit"] == jit
    assert ("nothing-compiled" in recording.flags) == (jit == "off")
    assert recording.profiled is not None
    assert recording.profiled.mechanism == ("tensorflow-graph" if jit == "off" else "xla-thunk")


def counted(run: Callable[[], object], framework: Any) -> Recording:
    plan = Plan(device="cpu", threads=1, count_only=True)
    return recorder.record(Step(run=run), plan, lambda text: None, framework)


def test_why_no_op_of_tensorflow_is_seen() -> None:
    x = tf.eye(64)

    def doubled() -> Any:
        return x @ x

    before = tf.function(doubled, autograph=False)
    before()
    found = counted(before, native_tensorflow(compiled=False))
    assert [signature.cost.flops for signature in found.signatures] == [2 * 64**3]
    with pytest.raises(MeasurementError, match=r"op by op \(MatMul\).* put it into a tf.function"):
        counted(doubled, native_tensorflow(compiled=False))
    with pytest.raises(MeasurementError, match="no op of TensorFlow"):
        counted(lambda: None, native_tensorflow(compiled=False))


@pytest.mark.thorough
def test_a_jax_step_whose_results_nobody_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    # While the profiler runs, a call of the program is two seconds of products (2^12 of 256^3 are 137 GFLOP) and
    # returns in microseconds: the profiler has stopped before they are done. If not, as the machine is busy, with more.
    started, stopped, turns = jax.profiler.start_trace, jax.profiler.stop_trace, [1]
    most: list[int] = []
    monkeypatch.setattr(jax.profiler, "start_trace", lambda *args, **kw: (turns.append(most[-1]), started(*args, **kw)))
    monkeypatch.setattr(jax.profiler, "stop_trace", lambda: (turns.append(1), stopped()))
    slow = jax.jit(lambda n, x: jax.lax.fori_loop(0, n, lambda _, y: jnp.tanh(y @ x), x))
    program, x = jax.jit(lambda x: jnp.tanh(x @ x)), jnp.ones((256, 256))
    jax.block_until_ready((slow(1, x), program(x)))

    def drops() -> None:
        slow(turns[-1], x)

    def waits() -> None:
        program(x).block_until_ready()

    def keeps() -> None:
        kept[:] = [program(x)]

    kept: list[Any] = []
    plan = Plan(device="cpu", threads=1, steps=3, profiled_steps=1)
    refusal = ""
    for number in (2**12, 2**14, 2**16):
        most.append(number)
        try:
            recorder.record(Step(run=drops), plan, lambda text: None, native_jax())
        except MeasurementError as error:
            refusal = str(error)
            break
    assert "returned nothing of it to wait for: return its outputs" in refusal
    assert "nothing-returned" in counted(waits, native_jax()).flags
    assert "nothing-returned" not in counted(keeps, native_jax()).flags
    assert "nothing-returned" not in counted(lambda: program(x), native_jax()).flags


def test_a_step_that_starts_a_profiler_is_told_so(tmp_path: Any) -> None:
    x = jnp.ones((8, 8))

    def traced() -> object:
        with jax.profiler.trace(str(tmp_path)):
            return jnp.tanh(x)

    def profiled() -> None:
        tf.profiler.experimental.start(str(tmp_path))
        tf.profiler.experimental.stop()

    for run, framework in ((traced, native_jax()), (profiled, native_tensorflow(compiled=False))):
        with pytest.raises(MeasurementError, match="a profiler of its own"):
            counted(run, framework)
