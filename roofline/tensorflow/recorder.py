"""Record TensorFlow; nothing here imports it before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofline.core.step import Step
from roofline.recording.inputs import Input
from roofline.xla.recorder import XSpaceRecorder

if TYPE_CHECKING:
    from roofline.recording.xspace.framework import Framework


@dataclass(frozen=True, slots=True)
class TensorFlowRecorder(XSpaceRecorder):
    """TensorFlow, natively or under Keras; see `tensorflow.framework.TensorFlow` for the other fields.

    compiled: values of a step's switch `jit` with which XLA is to compile it; None: where it has no such switch.
    """

    compiled: tuple[str | None, ...] = ()
    optimizers: tuple[str, ...] = ("optimizer",)
    libraries: tuple[str, ...] = ()

    def devices(self) -> tuple[str, ...]:
        """List what TensorFlow can run on here."""
        from roofline.tensorflow import framework

        return framework.devices()

    def framework(self, step: Step) -> Framework:
        """TensorFlow, as it runs this step."""
        from roofline.tensorflow.framework import TensorFlow

        return TensorFlow(step.switches.get("jit") in self.compiled, self.optimizers, self.libraries)


def call_with_inputs(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
    """TensorFlow: see `recording.backend.Backend.call_with_inputs`."""
    from roofline.tensorflow import shaped

    return shaped.step(called, inputs, device)
