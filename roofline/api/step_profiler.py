"""`roofline.StepProfiler`: some steps of a loop that runs anyway.

A recorder calls a step, some dozen times; the loop of a real training calls itself. Both are right if the recorder runs
as a coroutine on the thread of the loop: where it calls the step, the loop goes on to its next `step()`. All that a
profiler hooks into is per thread, so that it sees the loop's work as if it had called it.
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
    """Profiles steps of a loop and leaves the loop as it was: each step runs once, as it would have run.

    first: steps that are left alone before anything is measured (compilation, a cold cache). steps: plain steps that
    are timed; a dozen more are then profiled, and one is counted. mode: what a step of the loop is. backend: in what it
    is written. name: what the profile calls the model. model: its module, whose parameters are counted.

    Call `step()` at the end of every step; what runs between two calls is a step, reading of data included. `profile`
    is there once the loop ran enough of them. Needs greenlet
    (`pip install 'roofline[callbacks]'`).

    >>> with roofline.StepProfiler(backend="torch", mode="train") as profiler:
    ...     for batch in loader:
    ...         train(batch)
    ...         profiler.step()
    >>> print(profiler.profile)

    Raises MissingError without greenlet or the backend's framework. What goes wrong while measuring does not end the
    loop: it is written to stderr, and `profile` raises it.
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
            raise InputError(f"{first} steps left alone and {steps} timed are not possible: give at least 0 and 1.")
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
        """Whether the profile is there, or will not come: from then on `step()` does nothing."""
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
        """Ends measuring where the loop ended first, and takes away what it hooked in."""
        if self._recorder is not None and not self._recorder.dead:
            self._recorder.throw()  # GreenletExit, at the call of the step: profilers stop on its way out
        self._recorder = None

    def step(self, *results: object) -> None:
        """The end of one step of the loop.

        results: what it computed, where a framework computes on while Python goes on (JAX, TensorFlow): the step ends
        when they are there. Not needed for PyTorch.
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
        """In the coroutine: measure a step whose every run is one of the loop's."""
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
        """The loop goes on; who waits for the profile is told."""
        self._error = error
        print(f"StepProfiler: {error}", file=sys.stderr)
