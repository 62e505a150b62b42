"""Profile some steps of a loop that runs anyway: `roofline.StepProfiler`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from roofline.core.schema import Profile
from roofline.core.step import Mode
from roofline.errors import InputError, MeasurementError
from roofline.measuring.in_loop import LEFT_ALONE, LoopRecording
from roofline.standard_error import tell


class StepProfiler:
    """Profile steps of a loop and leave the loop as it was: each step runs once, as it would have run.

    first: number of steps that are skipped before the measurement (compilation, a cold cache). steps: number of timed
    plain steps; a dozen more are then profiled, and one is counted. mode: of the loop's steps. backend: their
    framework. name: of the model in the profile. model: its module, whose parameters are counted.

    Call `step()` at the end of every step; everything between two calls is a step, reading of data included. `profile`
    is complete once the loop ran enough of them.

    >>> with roofline.StepProfiler(backend="torch", mode="train") as profiler:
    ...     for batch in loader:
    ...         train(batch)
    ...         profiler.step()
    >>> print(profiler.profile)

    An error of the measurement, as without the backend's framework, does not end the loop: it is written to stderr, and
    `profile` raises it.
    """

    def __init__(
        self,
        *,
        backend: str = "torch",
        mode: Mode = "train",
        first: int = LEFT_ALONE,
        steps: int = 20,
        name: str | None = None,
        model: Any = None,
    ) -> None:
        if first < 0 or steps < 1:
            raise InputError(f"first={first} and steps={steps} are not possible: give at least 0 and 1.")
        self._asked: dict[str, Any] = {"backend": backend, "mode": mode, "steps": steps, "name": name, "model": model}
        self._left_alone = first
        self._ran = 0
        self._recording: LoopRecording[Profile] = LoopRecording(self._record)

    @property
    def done(self) -> bool:
        """True if the profile is complete, or failed: from then on `step()` does nothing."""
        return self._recording.result is not None or self._recording.error is not None

    @property
    def profile(self) -> Profile:
        """The profile. Raises MeasurementError where the loop ended before it was complete, or measuring failed."""
        if self._recording.result is None:
            if self._recording.error is not None:
                raise self._recording.error
            raise MeasurementError(
                f"The loop ended after {self._ran} steps, before all was measured: run more of them, or give "
                "StepProfiler a smaller `first` or `steps`."
            )
        return self._recording.result

    def __enter__(self) -> Self:
        if self._left_alone == 0:
            self._recording.start()
            self._report()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the measurement if the loop ended first, and remove its hooks."""
        self._recording.close()

    def step(self, *results: object) -> None:
        """Mark the end of a step of the loop.

        results: of the step, for frameworks that compute asynchronously (JAX, TensorFlow): the step ends when they are
        computed. Not needed for PyTorch.
        """
        self._ran += 1
        if self._recording.runs:
            self._recording.step(results)
        elif not self.done and self._ran >= self._left_alone:
            self._recording.start()
        else:
            return
        self._report()

    def _record(self, run: Callable[[], object]) -> Profile:
        """Measure a step whose every run is one of the loop's."""
        from roofline.measuring.in_process import as_step, measured

        asked = self._asked
        step = replace(as_step(run, asked["mode"]), model=asked["model"])
        return measured(step, asked["backend"], "auto", asked["steps"], asked["name"] or "loop", True, state_kept=False)

    def _report(self) -> None:
        """Print an error, which `profile` raises; the loop goes on."""
        if self._recording.error is not None:
            tell(f"StepProfiler: {self._recording.error}")
