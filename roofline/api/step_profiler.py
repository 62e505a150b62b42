"""Profile some steps of a loop that runs anyway: `roofline.StepProfiler`.

A recorder calls a step, some dozen times; the loop of a real training calls its own steps. So the recorder runs as a
coroutine on the thread of the loop: when it calls the step, the loop goes on to its next `step()`. The hooks of a
profiler are per thread, so the recorder sees the loop's work as if it had called it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from roofline import plugins
from roofline.core.schema import Profile
from roofline.core.step import Mode
from roofline.errors import InputError, MeasurementError, MissingError, RooflineError

if TYPE_CHECKING:
    from greenlet import greenlet


class StepProfiler:
    """Profile steps of a loop and leave the loop as it was: each step runs once, as it would have run.

    first: number of steps that are skipped before the measurement (compilation, a cold cache). steps: number of timed
    plain steps; a dozen more are then profiled, and one is counted. mode: of the loop's steps. backend: their
    framework. name: of the model in the profile. model: its module, whose parameters are counted.

    Call `step()` at the end of every step; everything between two calls is a step, reading of data included. `profile`
    is complete once the loop ran enough of them. Needs greenlet (`pip install 'roofline[callbacks]'`).

    >>> with roofline.StepProfiler(backend="torch", mode="train") as profiler:
    ...     for batch in loader:
    ...         train(batch)
    ...         profiler.step()
    >>> print(profiler.profile)

    Raises MissingError without greenlet or the backend's framework. An error of the measurement does not end the loop:
    it is written to stderr, and `profile` raises it.
    """

    def __init__(
        self,
        *,
        backend: str = "torch",
        mode: Mode = "train",
        first: int = 5,
        steps: int = 20,
        name: str | None = None,
        model: Any = None,
    ) -> None:
        if first < 0 or steps < 1:
            raise InputError(f"first={first} and steps={steps} are not possible: give at least 0 and 1.")
        if not plugins.importable("greenlet"):
            raise MissingError(
                "StepProfiler needs greenlet, which is not installed: run `pip install 'roofline[callbacks]'`."
            )
        self._asked: dict[str, Any] = {"backend": backend, "mode": mode, "steps": steps, "name": name, "model": model}
        self._left_alone = first
        self._ran = 0
        self._recorder: greenlet | None = None
        self._profile: Profile | None = None
        self._error: RooflineError | None = None

    @property
    def done(self) -> bool:
        """True if the profile is complete, or failed: from then on `step()` does nothing."""
        return self._profile is not None or self._error is not None

    @property
    def profile(self) -> Profile:
        """The profile. Raises MeasurementError where the loop ended before it was complete, or measuring failed."""
        if self._profile is None:
            if self._error is not None:
                raise self._error
            raise MeasurementError(
                f"The loop ended after {self._ran} steps, before all was measured: run more of them, or give "
                "StepProfiler a smaller `first` or `steps`."
            )
        return self._profile

    def __enter__(self) -> Self:
        if self._left_alone == 0:
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the measurement if the loop ended first, and remove its hooks."""
        if self._recorder is not None and not self._recorder.dead:
            self._recorder.throw()  # GreenletExit, at the call of the step: profilers stop on its way out
        self._recorder = None

    def step(self, *results: object) -> None:
        """Mark the end of a step of the loop.

        results: of the step, for frameworks that compute asynchronously (JAX, TensorFlow): the step ends when they are
        computed. Not needed for PyTorch.
        """
        self._ran += 1
        if self._recorder is not None:
            self._recorder.switch(results)
        elif not self.done and self._ran >= self._left_alone:
            self._start()

    def _start(self) -> None:
        from greenlet import greenlet

        self._recorder = greenlet(self._record)
        self._recorder.switch()

    def _record(self) -> None:
        """Measure, in the coroutine, a step whose every run is one of the loop's."""
        from roofline.measuring.in_process import as_step, measured

        assert self._recorder is not None
        loop, asked = self._recorder.parent, self._asked
        try:
            step = replace(as_step(loop.switch, asked["mode"]), model=asked["model"])
            self._profile = measured(
                step, asked["backend"], "auto", asked["steps"], asked["name"] or "loop", True, state_kept=False
            )
        except RooflineError as error:
            self._failed(error)
        except Exception as error:
            self._failed(MeasurementError(f"Profiling steps of a loop failed: {type(error).__name__}: {error}"))
        finally:
            self._recorder = None

    def _failed(self, error: RooflineError) -> None:
        """Keep the error for `profile`, and print it; the loop goes on."""
        self._error = error
        print(f"StepProfiler: {error}", file=sys.stderr)
