"""One step for a profiler from outside: which one is marked, on each backend, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import handmade
import pytest
import raw_counters
from msgspec.structs import replace

from roofline.core.schema import save
from roofline.core.step import Step, Workload
from roofline.measuring import one_step
from roofline.recording import child
from roofline.recording.request import Request


class Written:
    """Marks that write down what happens."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def start(self) -> None:
        self.seen.append("start")

    def stop(self) -> None:
        self.seen.append("stop")


@pytest.fixture(autouse=True)
def same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` sets the variables of a measuring process in this one."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "torchscript", "jax", "tensorflow"])
def test_the_last_step_of_the_warm_up_is_marked(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three steps run before it, one in it and none after."""
    pytest.importorskip(backend.removesuffix("script"))
    marks, build = Written(), child.build

    def counting(*arguments: object) -> tuple[Step, dict[str, str], bool]:
        step, read, has_run = build(*arguments)
        run = step.run

        def counted() -> object:
            marks.seen.append("step")
            return run()

        return one_step.replace(step, run=counted), read, has_run

    monkeypatch.setattr(child, "build", counting)
    request = Request(backend=backend, workload=Workload(model="mlp", mode="infer", batch=2), threads=1)
    one_step.run(request, marks)
    assert marks.seen == [*["step"] * one_step.BEFORE, "start", "step", "stop"]


@pytest.mark.parametrize(
    ("profile", "code", "words"),
    [
        (handmade.profile(), 2, "another device"),
        (replace(raw_counters.profile("infer"), environment={"threads": "1"}), 3, "NVIDIA"),
    ],
    ids=["of a CPU", "of a GPU that is not here"],
)
def test_what_cannot_be_run_here_is_said_in_a_sentence(
    profile: handmade.Profile, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if code == 3:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU here")
    save(profile, tmp_path / "p.json")
    assert one_step.main(str(tmp_path / "p.json")) == code
    assert words in capsys.readouterr().err
