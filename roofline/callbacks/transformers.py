"""A callback of Hugging Face's Trainer."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from roofline.api.step_profiler import StepProfiler
from roofline.core.schema import Profile
from roofline.errors import MeasurementError
from roofline.measuring.in_loop import LEFT_ALONE


class TransformersCallback(TrainerCallback):
    """Profiles steps of a Trainer, an optimizer's step each, with the batches that are accumulated for it.

    first: steps that are left alone; steps: plain steps that are timed, see `roofline.StepProfiler`. name: what the
    profile calls the model, by default as its class is called.

    >>> profiled = roofline.callbacks.TransformersCallback(first=10)
    >>> transformers.Trainer(model, arguments, train_dataset=data, callbacks=[profiled]).train()
    >>> roofline.save(profiled.profile, "training.json")
    """

    def __init__(self, *, first: int = LEFT_ALONE, steps: int = 20, name: str | None = None) -> None:
        self._asked: dict[str, Any] = {"first": first, "steps": steps, "name": name}
        self._profiler: StepProfiler | None = None

    @property
    def profile(self) -> Profile:
        """The profile. Raises MeasurementError before the training, and where it had too few steps."""
        if self._profiler is None:
            raise MeasurementError("The training has not begun, so there is no profile: call train() first.")
        return self._profiler.profile

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begins to count steps."""
        model = kwargs.get("model")
        asked = {**self._asked, "name": self._asked["name"] or type(model).__name__}
        self._profiler = StepProfiler(backend="torch", mode="train", model=model, **asked)
        self._profiler.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The end of a step of the optimizer."""
        if self._profiler is not None:
            self._profiler.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes away what was hooked in, where the training ended first."""
        if self._profiler is not None:
            self._profiler.close()
