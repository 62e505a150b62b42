"""Runs and records for backends on PyTorch: nothing here imports it before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roofline.core.step import Step
from roofline.recording.inputs import Input
from roofline.recording.recording import Check, Plan, Recording, Say


class TorchRecorder:
    """See `recording.backend.Recorder`: a step that PyTorch dispatches op by op."""

    def devices(self) -> tuple[str, ...]:
        """List what PyTorch can run on here."""
        import torch

        return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)

    def profiled_environment(self, device: str) -> dict[str, str]:
        """Nothing: plain and profiled steps run in one process."""
        return {}

    def load(self) -> None:
        """Import what records a step, and what counts its ops."""
        from roofline.pytorch.recording import record  # noqa: F401

    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """Time plain steps (T), profile a few (P) and count one (C); they are never mixed."""
        from roofline.pytorch.recording import record

        return record.record(step, plan, say)

    def verify(self, step: Step) -> list[Check]:
        """Our FLOPs beside FlopCounterMode's and fvcore's."""
        from roofline.pytorch.recording import verify

        return verify.verify(step)


def turn(build: Callable[[], Step], name: str, value: str) -> Step:
    """See `recording.backend.Backend.turn`."""
    from roofline.pytorch.recording import turned

    return turned.turn(build, name)


def call_with_inputs(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
    """See `recording.backend.Backend.call_with_inputs`."""
    from roofline.pytorch.recording import shaped

    return shaped.step(called, inputs, device)
