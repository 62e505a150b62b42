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
