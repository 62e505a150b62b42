"""How long torch.compile compiles in the plain steps of whoever calls it, and that PyTorch is left as it was."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from shared_cases import case

from roofline.backends import torch as eager
from roofline.backends import torch_compile
from roofline.core.executor import COMPILING
from roofline.core.step import Step
from roofline.recording import record as measurement
from roofline.recording.recording import Plan, Recording

PLAN = Plan(device="cpu", threads=1, steps=3, plain_only=True)


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(measurement, "bandwidth", lambda plan, threads: {})
    yield
    torch.compiler.reset()


def plainly(run: Callable[[], object], backend: Any = eager) -> Recording:
    recording: Recording = backend.BACKEND.recorder.record(Step(run=run), PLAN, lambda text: None)
    return recording


def other_shapes() -> Callable[[], object]:
    sizes = itertools.count(2)
    compiled = torch.compile(lambda x: torch.relu(x @ x.T).sum(), backend="eager", dynamic=False)
    return lambda: compiled(torch.ones(next(sizes), 8))


def backward_anew() -> Callable[[], object]:
    w = torch.ones(8, 8, requires_grad=True)

    def step() -> object:
        torch.compiler.reset()  # which forgets who listens
        torch.compile(lambda w: torch.relu(w @ w).sum(), backend="aot_eager")(w).backward()
        return w.grad

    return step


@pytest.mark.parametrize("make", [other_shapes, backward_anew])
def test_what_a_step_compiles_anew_is_timed(make: Callable[[], Callable[[], object]]) -> None:
    with torch._dynamo.config.patch(recompile_limit=64):
        recording = plainly(make())
    assert 0 < 3 * recording.conditions[COMPILING] < sum(recording.wall.steps)


def test_what_was_compiled_before_is_not() -> None:
    compiled, x = torch.compile(lambda x: torch.relu(x @ x), backend="eager"), torch.ones(8, 8)
    recording = plainly(lambda: compiled(x))
    assert recording.conditions[COMPILING] == 0
    handler = torch._dynamo.callback.callback_handler
    assert not {"run_start_callbacks", "run_end_callbacks"} & vars(handler).keys(), "as it was before"


@pytest.mark.thorough  # which the steps of above stand for
def test_reported_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shapes of one change from step to step until PyTorch gives up; another breaks its graph, once for all.

    What Dynamo hands over is run as it is: Inductor has g++ compile each of the graphs, which takes ten seconds.
    """
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    assert plainly(case("t09_recompile.py", "make_shapes"), torch_compile).conditions[COMPILING] > 0
    assert plainly(case("t09_recompile.py", "make_break"), torch_compile).conditions[COMPILING] == 0
