"""The process that records: what it does before there is a step."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roofline.backends.torch import BACKEND
from roofline.core.step import Step, Workload
from roofline.errors import MeasurementError, MissingError
from roofline.plugins import importing
from roofline.recording import child
from roofline.recording.backend import NeedsData
from roofline.recording.recording import Plan
from roofline.recording.request import Request


@pytest.fixture
def collecting() -> Iterator[None]:
    """As a process begins, whatever became of this one."""
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


@pytest.mark.usefixtures("collecting")
def test_importing_a_framework_is_not_held_up_by_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_framework.py").write_text("import gc\ncollecting = gc.isenabled()\n")
    (tmp_path / "a_broken_one.py").write_text("raise RuntimeError('no such symbol')\n")
    with importing():
        child._import("a_framework", "torch", BACKEND)
    import a_framework

    assert not a_framework.collecting
    assert gc.isenabled()
    with pytest.raises(MissingError, match="no such symbol"), importing():
        child._import("a_broken_one", "torch", BACKEND)
    assert gc.isenabled()


def test_building_and_the_first_step_are_expected_to_return(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(
        "import torch\n\ndef make_step():\n    x = torch.ones(4, 4)\n    return lambda: x @ x\n"
    )
    workload = Workload(model="mine:make_step")
    request = Request(
        backend="torch", workload=workload, file=str(tmp_path / "mine.py"), function="make_step", count_only=True
    )
    expected: list[tuple[str, float]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "_limit_memory", lambda device: None)
        patch.setattr(sys, "path", [*sys.path])
        child._run(request, lambda subject, seconds: expected.append((subject, seconds)))
    assert expected[:3] == [("What builds the step", 0.0), ("", math.inf), ("The step", 0.0)]
    assert [subject for subject, _ in expected[3:]] == ["The step"]


@pytest.mark.parametrize(("call", "called"), [("sys.exit(0)", "sys.exit(0)"), ("sys.exit()", "sys.exit()")])
def test_a_step_that_ends_the_process_is_told_so(tmp_path: Path, call: str, called: str) -> None:
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(f"import sys\n\ndef make_step():\n    return lambda: {call}\n")
    workload = Workload(model="mine:make_step")
    request = Request(backend="torch", workload=workload, file=str(tmp_path / "mine.py"), function="make_step")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "_limit_memory", lambda device: None)
        patch.setattr(sys, "path", [*sys.path])
        with pytest.raises(MeasurementError) as refused:
            child._run(request)
    assert str(refused.value) == f"The step called {called}, which ends the measurement: let it return."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def make_step():\n    sys.exit(3)\n", "make_step called sys.exit(3) before it returned a step"),
        ("def make_step():\n    return print\nsys.exit()\n", "mine.py called sys.exit() when it was imported"),
    ],
)
def test_a_file_that_ends_the_process_before_there_is_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    (tmp_path / "mine.py").write_text(f"import sys\n\n{text}")
    monkeypatch.setattr(sys, "path", [*sys.path])
    request = Request(
        backend="torch", workload=Workload(model="mine"), file=str(tmp_path / "mine.py"), function="make_step"
    )
    with pytest.raises(MeasurementError) as refused:
        child.build(request, BACKEND)
    assert str(refused.value).startswith(told)


def test_a_profiler_inside_of_a_torch_step() -> None:
    torch = pytest.importorskip("torch")
    x, plan = torch.ones(4), Plan(device="cpu", count_only=True)
    for one in (torch.profiler.profile, torch.autograd.profiler.profile):

        def run(one: Any = one) -> None:
            with one():
                x.add(1)

        with pytest.raises(MeasurementError, match="a profiler of its own"):
            BACKEND.recorder.record(Step(run=run), plan, lambda text: None)
        run()  # may again afterwards


def test_a_users_model_has_blocks_and_a_step_that_trains_is_recorded_as_that() -> None:
    torch = pytest.importorskip("torch")

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mixing, self.feeding = torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 8))

        def forward(self, x: Any) -> Any:
            return self.feeding(self.mixing(x))

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = torch.nn.Sequential(Layer(), Layer()), torch.nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x))

    model = Model()
    optimizer, x = torch.optim.SGD(model.parameters()), torch.ones(4, 8)

    def infer() -> Any:
        return model(x)

    def train() -> None:
        infer().sum().backward()
        optimizer.step()

    plan = Plan(device="cpu", count_only=True)
    inferred, trained = (BACKEND.recorder.record(Step(run=run), plan, lambda text: None) for run in (infer, train))
    parts = {"body/*/mixing", "body/*/feeding", "head"}
    assert set(inferred.blocks) == parts
    assert parts | {"optimizer"} <= set(trained.blocks)
    assert (inferred.mode, "trains" in inferred.flags) == ("infer", False)
    assert (trained.mode, "trains" in trained.flags) == ("train", True)


class Mute:
    """A recorder of steps that raise."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def record(self, step: Step, plan: Plan, say: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NeedsData("the numbers of float32[2]"), "counted with data, since it needs the numbers of float32[2]."),
        (AttributeError("no such thing"), "counted with data, since it raises AttributeError without."),
    ],
)
def test_what_cannot_be_counted_without_data_is_counted_with_it(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[str] = []
    step = Step(run=lambda: None, parameters=1)
    monkeypatch.setattr(child, "build", lambda request, backend: (step, {}, False))
    monkeypatch.setattr(child, "tell", words.append)
    backend = replace(BACKEND, recorder=Mute(error), without_data=nullcontext)
    request = Request(backend="torch", workload=Workload(model="mlp"), count_only=True, without_data=True)
    assert child._counted_without_data(request, backend, Plan(device="cpu", count_only=True)) is None
    assert words == [f"The step is {said}"]


def _raise(*_: object) -> None:
    raise TypeError("a step's own")


def _of_c(*_: object) -> tuple[Step, None, bool]:
    """Build a step that is a function of C, without a frame of its own, and raises TypeError."""
    return Step(run=partial(len, 1)), None, False


@pytest.mark.parametrize(
    ("build", "code"), [(None, 70), (_raise, 4), (_of_c, 4)], ids=["of roofline", "of a step", "of a step in C"]
)
def test_a_defect_is_no_error_of_the_step(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    build: Callable[..., object] | None,
    code: int,
) -> None:
    """What cannot be called raises in roofline's own line; `_raise` stands for a step, whose frame is its own."""
    pytest.importorskip("torch")
    monkeypatch.setattr(child, "_limit_memory", lambda device: None)
    monkeypatch.setattr(child, "build", build)
    request, answer = tmp_path / "request", tmp_path / "answer"
    request.write_bytes(msgspec.json.encode(Request(backend="torch", workload=Workload(model="mlp"))))
    assert child.main([str(request), str(answer)]) == 0
    result = msgspec.json.decode(answer.read_bytes())
    assert result["code"] == code
    assert "TypeError" in result["error"]
    assert "--debug" not in result["error"]
    assert "Traceback" in capsys.readouterr().err
