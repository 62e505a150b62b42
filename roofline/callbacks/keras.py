"""A callback of Keras's fit, on each of its backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from roofline.api.step_profiler import StepProfiler
from roofline.core.schema import Profile
from roofline.errors import MeasurementError
from roofline.measuring.in_loop import LEFT_ALONE


class KerasCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Profiles batches of a fit, the data and the other callbacks included.

    first: batches that are left alone; steps: plain ones that are timed, see `roofline.StepProfiler`. name: what the
    profile calls the model, by default as the model is called. On TensorFlow measuring begins with the first batch,
    whatever `first` is, since TensorFlow shows the graph of a function in its first call only.

    >>> profiled = roofline.callbacks.KerasCallback(first=10)
    >>> model.fit(data, callbacks=[profiled])
    >>> roofline.save(profiled.profile, "fit.json")
    """

    def __init__(self, *, first: int = LEFT_ALONE, steps: int = 20, name: str | None = None) -> None:
        super().__init__()
        self._asked: dict[str, Any] = {"first": first, "steps": steps, "name": name}
        self._profiler: StepProfiler | None = None

    @property
    def profile(self) -> Profile:
        """The profile. Raises MeasurementError before the fit, and where it had too few batches."""
        if self._profiler is None:
            raise MeasurementError("No fit has begun, so there is no profile: call fit() first.")
        return self._profiler.profile

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Begins to count batches."""
        engine = keras.backend.backend()
        asked = {**self._asked, "name": self._asked["name"] or self.model.name}
        if engine == "tensorflow":
            asked["first"] = 0
        self._profiler = StepProfiler(backend=f"keras-{engine}", mode="train", **asked)
        self._profiler.__enter__()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """The end of a batch, or of `steps_per_execution` of them."""
        if self._profiler is not None:
            self._profiler.step(dict(logs or {}))

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Takes away what was hooked in, where the fit ended first."""
        if self._profiler is not None:
            self._profiler.close()
