"""JAX on a real GPU, each test in processes of its own: XLA reads its flags once, and CUPTI serves one profiler.

What a CPU shows of the same is in `recording/test_queue.py` (donation, the queue) and `test_gpu_planes.py` (joins).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from roofline import devices
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.device import Device
from roofline.core.step import Workload
from roofline.devices import nvidia
from roofline.measuring import session
from roofline.recording import protocol
from roofline.recording.recording import Recording
from roofline.recording.request import Request

pytestmark = pytest.mark.gpu

UNTUNED = "--xla_gpu_autotune_level=0"


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks without loading JAX, which would keep most of the GPU's memory from the processes that are tested."""
    if why := nvidia.unavailable():
        pytest.skip(f"needs a CUDA GPU: {why}")
    if find_spec("jax_plugins") is None:
        pytest.skip("needs JAX for CUDA: no jax_plugins are installed")
    # Those of the other tests leave programs unoptimised. Autotuning takes minutes a program, and only which kernel is
    # chosen depends on it; one test does without this.
    monkeypatch.setenv("XLA_FLAGS", UNTUNED)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def workload(device: str, **more: Any) -> Workload:
    """Two layers of BERT, 8 sequences of 128 tokens: 1.4e11 FLOP forward, a millisecond in TF32."""
    return Workload(model="bert", layers=2, batch=8, seq=128, device=device, **more)


@cache
def _measured(backend: str, folder: Path, **more: Any) -> tuple[Request, Recording]:
    request = Request(backend=backend, workload=workload("cuda", **more), steps=20)
    _, request = session.ready(request)
    return request, session.record_whole(request, session.load(backend), {}, folder)


def analysed(request: Request, recording: Recording) -> Analysis:
    """Under the datasheet, above which nothing can be; without ceilings on a GPU that has none here."""
    snapshot = nvidia.snapshot(nvidia.visible_index())
    assert snapshot is not None
    device = devices.datasheet(snapshot.name, snapshot.memory) or Device(name=snapshot.name, kind="cuda", ceilings={})
    return analyze(session.to_profile(recording, request, device, ""))


def strangers(recording: Recording) -> list[str]:
    """Kernels without an op, by name."""
    return [one.name for one in recording.signatures if one.kind == "kernel"]


STEPS = [("train", "fp32", "fp32"), ("train", "tf32", "tf32"), ("infer", "bf16", "bf16")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.mark.parametrize(("mode", "precision", "arithmetic"), STEPS)
def test_every_kernel_has_its_op_and_no_op_is_above_its_roof(
    folder: Path, mode: str, precision: str, arithmetic: str
) -> None:
    """Command buffers on in the plain steps, as XLA has them, and off in the profiled ones. Training donates."""
    request, recording = _measured("jax", folder, mode=mode, precision=precision)
    assert recording.profiled is not None
    assert len(recording.wall.steps) == 20
    assert (recording.switches["donation"] == "on") == (mode == "train")
    # What is profiled are several steps, enqueued two deep.
    assert len(recording.profiled.walls) + recording.profiled.dropped in (protocol._FEW, protocol._MANY)
    assert recording.profiled.joined >= 0.99, (recording.profiled.joined, recording.notes)
    assert strangers(recording) == []
    assert recording.notes == ()
    assert [flag for flag in recording.flags if flag.startswith(("optimised-only", "command-buffers", "phases"))] == []
    products = [one for one in recording.signatures if one.cost.flops]
    assert products
    assert {None if one.precision is None else one.precision.arithmetic for one in products} == {arithmetic}
    analysis = analysed(request, recording)
    names = [
        (recording.signatures[op.signature].name, recording.signatures[op.signature].cost, op.own_ns, floor)
        for op, above, floor in zip(
            recording.ops, analysis.table.above.tolist(), analysis.table.floor.tolist(), strict=True
        )
        if above
    ]
    assert names == []
    assert analysis.coverage["bytes"] >= 0.99
    assert set(recording.ceilings) >= {"launch.xla-thunk"}
    assert 1e-7 < recording.ceilings["launch.xla-thunk"].value < 2e-5


def test_the_work_is_what_the_same_step_does_on_a_cpu(folder: Path) -> None:
    request, recording = _measured("jax", folder, mode="train", precision="fp32")
    same = workload("cpu", mode="train", precision="fp32")
    on_cpu = session.record(
        Request(backend="jax", workload=same, count_only=True), session.load("jax"), {"CUDA_VISIBLE_DEVICES": ""}
    )
    counted = analyze(session.to_profile(on_cpu, request, Device(name="-", kind="cpu", ceilings={}), ""))
    analysis = analysed(request, recording)
    for phase, products in counted.products.items():
        assert analysis.products[phase].model == pytest.approx(products.model, rel=1e-6), phase


def test_both_processes_have_the_same_autotuned_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS")
    _measured("jax", tmp_path, mode="infer", precision="bf16")
    assert [path for path in tmp_path.rglob("*") if path.is_file()], "XLA kept nothing of what it autotuned"


def test_keras_on_jax(folder: Path) -> None:
    """Keras copies inputs and results in every step: those have no instruction, and nothing else has none."""
    _, recording = _measured("keras-jax", folder, mode="train", precision="tf32")
    assert recording.profiled is not None
    assert [name for name in strangers(recording) if not name.startswith(("Memcpy", "Memset"))] == []
    products = [one for one in recording.signatures if one.cost.flops]
    assert {None if one.precision is None else one.precision.arithmetic for one in products} == {"tf32"}


def python(program: str, **variables: str) -> dict[str, Any]:
    """What a program printed last, as JSON."""
    environment = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


IN_PROCESS = """
import json
import jax, jax.numpy as jnp
from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.recording.recording import Plan
from roofline.recording.xspace import recorder
from roofline.xla.recorder import JaxRecorder

returns = RETURNS

def loss(state, x):
    for w in state["layers"]:
        x = jnp.tanh(x @ w)
    return (x ** 2).mean()

def update(state, x):
    return jax.tree.map(lambda w, g: w - 0.1 * g, state, jax.grad(loss)(state, x))

step = jax.jit(update, donate_argnums=0)
kept = [step({"layers": [jnp.eye(2048) for _ in range(4)]}, jnp.ones((512, 2048)))]
x = jnp.ones((512, 2048))

def run():
    kept[0] = step(kept[0], x)
    return kept[0] if returns else None

framework = JaxRecorder().framework(Step(run=run))
try:
    found = recorder.record(
        Step(run=run, mode="train"), Plan(device="cuda", steps=10, profiled_steps=5), lambda text: None, framework
    )
    print(json.dumps(dict(
        joined=found.profiled.joined, steps=len(found.wall.steps), flags=found.flags, walls=found.profiled.walls,
        wall=found.wall.steps, flops=sum((found.signatures[op.signature].cost.flops or 0) for op in found.ops),
        kernels=found.kernels, notes=found.notes,
    )))
except MeasurementError as error:
    print(json.dumps({"error": str(error)}))
"""


def in_process(returns: bool) -> str:
    """A program that records a step, which gives its state away and returns it, or returns nothing."""
    return IN_PROCESS.replace("RETURNS", str(returns))


#: Four products forward; backward the gradients of four weights and of three inputs: 11 x 2 x 512 x 2048 x 2048 FLOP.
FLOPS = 11 * 2 * 512 * 2048 * 2048
OFF = f"{UNTUNED} --xla_gpu_enable_command_buffer="


@pytest.mark.parametrize("returns", [True, False])
def test_steps_that_give_their_state_away_are_timed_two_deep(returns: bool) -> None:
    found = python(in_process(returns), XLA_FLAGS=OFF)
    assert "error" not in found, found
    assert found["steps"] == 10
    assert found["joined"] >= 0.99
    assert found["notes"] == []
    assert found["flops"] == FLOPS


def test_kernels_of_command_buffers_are_not_taken_for_ops() -> None:
    """The same with XLA's default: what a buffer launched is said to be so, or refused with the cure."""
    found = python(in_process(True))
    if "error" in found:
        assert OFF.split()[-1] in found["error"], found
    else:
        assert any(flag.startswith("command-buffers: ") for flag in found["flags"]) or found["joined"] >= 0.99, found
