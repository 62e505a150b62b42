"""Steps that are enqueued two deep, with JAX on a CPU: its arrays are given away and arrive as on a GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.recording import record as measurement
from roofline.recording.recording import Plan
from roofline.recording.xspace import probes, queue, recorder
from roofline.timing import executor
from roofline.traces.annotations import SETTLING, STEP
from roofline.traces.xplane.reader import Line, XTrace
from roofline.xla import jax as jax_framework
from roofline.xla.jax import Jax

# 2 x 32 x 64 x 64 FLOPs of one product.
PRODUCT = 2 * 32 * 64 * 64
X = np.ones((32, 64), np.float32)


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "bandwidth", lambda plan, threads: {})
    monkeypatch.setattr(probes, "GPU_ELEMENTS", (1024,))
    monkeypatch.setattr(probes, "TRIVIAL_RUNS", 3)


def framework() -> Jax:
    return Jax(("optimizer",), ())


def training(returns: bool) -> tuple[Step, list[Any]]:
    """A step that writes its new state over the old one, and returns it or nothing; and where the state is."""
    function = jax.jit(lambda w: w - 0.1 * jax.grad(lambda w: (jnp.tanh(X @ w) ** 2).mean())(w), donate_argnums=0)
    state = [function(jnp.eye(64))]

    def run() -> Any:
        state[0] = function(state[0])
        return state[0] if returns else None

    return Step(run=run, mode="train"), state


@pytest.mark.parametrize("returns", [True, False])
def test_a_step_may_take_what_the_one_before_returned(returns: bool) -> None:
    step, state = training(returns)
    before = state[0]
    step.run()
    assert before.is_deleted()  # what makes waiting for it impossible
    jaxs = framework()
    queue.prepare(step, jaxs)
    assert len(queue.steady(step, 3, jaxs)) == 3
    plan = Plan(device="cuda", threads=1, steps=4, profiled_steps=2)
    recording = recorder.record(step, plan, lambda text: None, jaxs)
    assert recording.profiled is not None
    assert (len(recording.wall.steps), len(recording.profiled.walls) + recording.profiled.dropped) == (4, 2)
    # What tells the end of a step was compiled with the first one, and is no compilation of those that are timed.
    assert recording.conditions["compiling_seconds_per_step"] == 0
    # The product and that of its gradient, and no token among the ops.
    assert recording.profiled.joined == 1.0
    assert sum(recording.signatures[op.signature].cost.flops or 0 for op in recording.ops) == 2 * PRODUCT


@pytest.mark.parametrize("returns", [True, False])
def test_two_steps_are_in_flight(returns: bool) -> None:
    """A step is waited for while the next one, which has 33e9 FLOP to do, has not ended."""
    short = jax.jit(lambda x: x + 1)
    long = jax.jit(lambda times, x: jax.lax.fori_loop(0, times, lambda _, y: jnp.tanh(y @ x), x))
    x, jaxs = jnp.eye(256), framework()
    jaxs.wait([long(1, x), jaxs.token(None)])  # compiled
    kept = [short(x)]
    first = jaxs.end(kept[0] if returns else None)
    kept.append(long(1000, x))
    jaxs.wait(first)
    assert kept[0].is_ready()
    assert not kept[1].is_ready()
    jaxs.wait(kept)


def test_once_everything_was_given_away_a_token_tells_the_end() -> None:
    step, _ = training(returns=True)
    jaxs = framework()
    queue.prepare(step, jaxs)
    outputs = step.run()
    token = jaxs.end(outputs)
    assert isinstance(token, jax.Array)
    assert token is not outputs
    step.run()
    jaxs.wait(token)
    assert outputs.is_deleted()
    # One that outlives the next step is waited for itself: a token more would take its time.
    loss = jnp.ones(())
    assert framework().end({"loss": loss, "seconds": 3.0})[0] is loss  # type: ignore[index]


def made(*events: tuple[str, float, float, int, int], modules: dict[int, str]) -> XTrace:
    """Events (name, start, end, program, line) of lines: the host, two streams of a GPU. Times in picoseconds."""
    names = tuple(dict.fromkeys(name for name, *_ in events))
    size = len(events)
    absent = {name: np.full(size, -1, np.int64) for name in ("produces", "consumes", "bytes", "scope")}
    nothing = {name: np.zeros(size, np.int64) for name in ("run", "graph")}
    code = np.asarray([names.index(name) for name, *_ in events], np.int32)
    program = np.asarray([program for *_, program, _ in events], np.int64)
    gpu = "/device:GPU:0"
    return XTrace(
        start=np.asarray([start for _, start, *_ in events], np.int64),
        end=np.asarray([end for _, _, end, *_ in events], np.int64),
        name=code,
        line=np.asarray([line for *_, line in events], np.int32),
        hlo_op=np.where(program > 0, code, -1).astype(np.int32),
        program=program,
        names=names,
        lines=(Line("/host:CPU", "python"), Line(gpu, "Stream #7(Compute)"), Line(gpu, "Stream #8(MemcpyD2D)")),
        modules={number: (name, b"") for number, name in modules.items()},
        origin=0,
        warnings=(),
        **absent,
        **nothing,
    )


#: Three steps, enqueued at 0, 10 and 25 on the host; the device is done with them at 40, 80 and 120. A call of the
#: driver names the program too, and a token of another program has the number 9.
QUEUED = made(
    (SETTLING, 0, 10, 0, 0),
    ("cuLaunchKernel", 8, 9, 9, 0),
    (SETTLING, 10, 20, 0, 0),
    (SETTLING, 25, 35, 0, 0),
    ("gemm", 12, 35, 5, 1),
    ("add", 39, 40, 9, 1),
    ("gemm", 42, 75, 5, 1),
    ("copy", 50, 60, 5, 2),
    ("add", 78, 80, 9, 1),
    ("gemm", 82, 115, 5, 1),
    ("add", 118, 120, 9, 1),
    modules={5: "jit_step", 9: "jit_roofline_token"},
)  # fmt: skip


def test_a_step_begins_where_the_one_before_ends_on_the_device() -> None:
    trace = queue.marked(QUEUED, 3, "jit_roofline_token")
    assert executor.windows(trace, STEP) == [(40, 80), (80, 120)]
    # Neither tokens nor what marked the steps on the host are left.
    assert [trace.names[name] for name in trace.name[:-2]] == ["gemm", "gemm", "copy", "gemm"]
    # A kernel of the second step is in its window though it was enqueued before the first one was done.
    inside = (trace.start >= 40) & (trace.start < 80) & (trace.hlo_op >= 0)
    assert [trace.names[name] for name in trace.name[inside]] == ["gemm", "copy"]


def test_a_step_alone_begins_on_the_host() -> None:
    rows = np.isin(np.arange(len(QUEUED)), (1, 2, 3, 6, 7, 8, 9, 10))
    alone = queue.marks.without(QUEUED, rows)
    assert executor.windows(queue.marked(alone, 1, "jit_roofline_token"), STEP) == [(0, 40)]


def test_without_the_ends_of_steps_there_is_nothing_to_time() -> None:
    with pytest.raises(MeasurementError, match="the ends of 3 of 4 steps"):
        queue.marked(QUEUED, 4, "jit_roofline_token")
    with pytest.raises(MeasurementError, match="the ends of 0 of 3 steps"):
        queue.marked(replace(QUEUED, modules={}), 3, "jit_roofline_token")


def test_a_function_in_a_row_is_evaluated_so_often() -> None:
    jaxs = framework()
    run = jaxs.function("tanh", 1000, 3)
    assert run is not None
    (counted,) = [recorder.profiled_step(Step(run=run), jaxs, 1)]
    ops = jaxs.read([counted], STEP).counted.ops
    # 3 x 1000 evaluations, none of which a compiler could take for another.
    assert sum((op.costed.cost.functions or {}).get("tanh", 0) for op in ops) == 3 * 1000
    np.testing.assert_allclose(run(), np.tanh(np.linspace(0.1, 0.9, 1000)), rtol=1e-5)


def test_on_a_gpu_the_least_op_is_a_program_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many results of one program would be fused, or become copies: each op is a program."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    jaxs = framework()
    found = {}
    for kind, run in jaxs.trivial().items():
        counted = jaxs.read([recorder.profiled_step(Step(run=run), jaxs, 1)], STEP).counted
        found[kind] = [(op.times, op.costed.cost.vector_flops, op.costed.cost.bytes_written) for op in counted.ops]
    assert found == {
        "a kernel that adds to one number": [(100, 100, 100 * 4)],
        "a kernel that writes 32 numbers": [(100, 0, 100 * 32 * 4)],
    }


def test_the_kernel_that_only_writes_is_no_constant() -> None:
    (root,) = re.findall(r"ROOT .*= (.*)", jax_framework.writes_numbers.lower().compile().as_text())[-1:]
    assert "fusion()" in root or "iota()" in root, "a constant would be copied, without a kernel"


def test_the_floor_of_a_gpu_says_which_kernel_it_is_and_how_far_apart_those_lie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    seen: dict[str, list[float]] = {}
    least = probes._least

    def kept(framework: Any, run: Any) -> tuple[list[float], float]:
        durations, cost = least(framework, run)
        seen[f"kind {len(seen)}"] = [duration for duration in durations if duration > 0]
        return durations, cost

    monkeypatch.setattr(probes, "_least", kept)
    found, cost = probes.launch(framework())
    ((name, floor),) = found.items()
    adds, writes = seen.values()
    mine, kind = min((adds, "adds to one number"), (writes, "writes 32 numbers"), key=lambda pair: min(pair[0]))
    assert name == "launch.xla-thunk"
    assert floor.value == min(mine)
    assert floor.source == f"measured: least event of a kernel that {kind}, {len(mine)} events"
    assert floor.spread == round(1 - min(mine) / median(mine), 4)
    assert cost >= 0


@pytest.mark.parametrize(
    ("capability", "asked", "override", "arithmetic"),
    [
        ("9.0", None, "", "tf32"),
        ("9.0", "tensorfloat32", "", "tf32"),
        ("9.0", "highest", "", "ieee"),
        ("9.0", None, "0", "ieee"),
        ("7.5", None, "", "ieee"),
        ("gfx90a", None, "", "ieee"),
    ],
)
def test_float32_products_are_tf32_where_there_is_nothing_against_it(
    monkeypatch: pytest.MonkeyPatch, capability: str, asked: str | None, override: str, arithmetic: str
) -> None:
    jaxs = framework()
    assert jaxs.switches()["float32 matmul (XLA)"] == "ieee"  # whatever is asked for: a CPU has nothing else

    class Gpu:
        compute_capability = capability

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", lambda: [Gpu()])
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", override)
    with jax.default_matmul_precision(asked):
        switches = jaxs.switches()
    assert switches["float32 matmul (XLA)"] == switches["float32 convolution (XLA)"] == arithmetic


def test_a_token_waits_for_whatever_a_step_returns() -> None:
    jaxs = framework()
    outputs = {"key": jax.random.key(0), "state": [jnp.ones((3, 3), jnp.bfloat16), None, 2.0], "number": np.ones(2)}
    first, second = jaxs.token(outputs), jaxs.token({"loss": 1.0})
    jaxs.wait([first, second])
    assert int(second) == int(first) + 1  # type: ignore[call-overload]
