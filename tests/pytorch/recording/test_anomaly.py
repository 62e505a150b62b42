"""Whether a step runs in autograd's anomaly mode: turned on before it, or in it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.backends.torch import BACKEND
from roofline.core.step import Step
from roofline.pytorch.recording import anomaly
from roofline.recording.recording import Plan

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection")


def test_a_step_that_turns_it_on_for_its_backward_pass() -> None:
    w = torch.ones(4, 4, requires_grad=True)

    def run() -> None:
        with torch.autograd.set_detect_anomaly(True):
            (w * 2).sum().backward()

    turn = torch.set_anomaly_enabled
    watched, usual = (
        BACKEND.recorder.record(Step(run=step), Plan(device="cpu", count_only=True), lambda text: None).switches
        for step in (run, lambda: (w * 2).sum().backward())
    )
    assert watched["detect_anomaly"] == "True"
    assert "detect_anomaly" not in usual
    assert torch.set_anomaly_enabled is turn
    assert not torch.is_anomaly_enabled()


def test_a_program_that_has_it_on_and_one_that_does_not_look_for_nan() -> None:
    with torch.autograd.detect_anomaly(), anomaly.noted() as found:
        pass
    assert found == {"detect_anomaly": "True"}
    with anomaly.noted() as found, torch.autograd.set_detect_anomaly(True, check_nan=False):
        pass
    assert found == {"detect_anomaly": "True, check_nan False"}
    with anomaly.noted() as found, torch.autograd.set_detect_anomaly(False):
        pass
    assert found == {}


def test_what_torch_compile_turns_on_to_trace_a_backward_pass_is_not_the_programs() -> None:
    """AOTAutograd does, without the search for nan; the compiled step runs without the mode."""
    w = torch.ones(4, 4, requires_grad=True)
    step = torch.compile(lambda: (w * 2).sum(), backend="aot_eager")
    with anomaly.noted() as found:
        step().backward()
    assert found == {}
    torch._dynamo.reset()
