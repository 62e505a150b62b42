"""Record a framework that writes XSpace; nothing here imports one before it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roofline.core.step import Step
from roofline.recording.inputs import Input
from roofline.recording.recording import Check, Plan, Recording, Say
from roofline.xla import flags

if TYPE_CHECKING:
    from roofline.recording.xspace.framework import Framework


class XSpaceRecorder(ABC):
    """See `recording.backend.Recorder`: what a framework is left to say is what it is and where it runs."""

    @abstractmethod
    def devices(self) -> tuple[str, ...]:
        """List what the framework can run on here, "cpu" first."""

    @abstractmethod
    def framework(self, step: Step) -> Framework:
        """The framework as the recorder of a step sees it."""

    def profiled_environment(self, device: str) -> dict[str, str]:
        """Beside a GPU no command buffers, whose kernels name no op."""
        return flags.without_command_buffers(device)

    def load(self) -> None:
        """Import what records a step and is no part of one framework's own."""
        from roofline.recording.xspace import recorder  # noqa: F401

    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """Time plain steps (T), profile a few (P) and count what they ran (C)."""
        from roofline.recording.xspace import recorder

        return recorder.record(step, plan, say, self.framework(step))

    def verify(self, step: Step) -> list[Check]:
        """Our FLOPs beside those of XLA."""
        from roofline.xla import verify

        return verify.verify(step, self.framework(step))


@dataclass(frozen=True, slots=True)
class JaxRecorder(XSpaceRecorder):
    """JAX, natively or under Keras; see `xla.jax.Jax` for the fields."""

    optimizers: tuple[str, ...] = ("optimizer",)
    libraries: tuple[str, ...] = ("flax", "optax")

    def profiled_environment(self, device: str) -> dict[str, str]:
        """No command buffers, and the kernels that plain steps have, too."""
        return flags.with_autotuning(flags.without_command_buffers(device), device)

    def devices(self) -> tuple[str, ...]:
        """List what JAX can run on here. XLA reads its flags now."""
        from roofline.xla import jax

        flags.keep_known(jax.libraries())
        return jax.devices()

    def framework(self, step: Step) -> Framework:
        """JAX."""
        from roofline.xla.jax import Jax
        from roofline.xla.shapes import active

        shapes = active.get()
        if shapes is not None:
            from roofline.xla.shapes.framework import JaxWithoutData

            return JaxWithoutData(shapes, self.optimizers, self.libraries)
        return Jax(self.optimizers, self.libraries, unnamed=not step.blocks)


def turn(build: Callable[[], Step], name: str, value: str) -> Step:
    """JAX: see `recording.backend.Backend.turn`."""
    from roofline.xla import turned

    return turned.turn(build, name)


def call_with_inputs(called: Callable[..., object], inputs: Sequence[Input], device: str) -> Step:
    """JAX: see `recording.backend.Backend.call_with_inputs`."""
    from roofline.xla import shaped

    return shaped.step(called, inputs, device)
