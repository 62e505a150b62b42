"""Record steps of a loop that runs anyway.

A recorder calls a step, some dozen times; the loop of a real training calls its own steps. So the recorder runs as a
coroutine on the thread of the loop: when it calls the step, the loop goes on until it marks the end of its next step.
The hooks of a profiler are per thread, so the recorder sees the loop's work as if it had called it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from roofline.errors import MeasurementError, RooflineError, reason

Result = TypeVar("Result")

#: Steps of a loop that are left alone before it is measured: they compile, and fill caches. By choice.
LEFT_ALONE = 5


class Coroutine:
    """Run functions in a coroutine whose stack begins where this object was made, one at a time.

    A greenlet has a part of the thread's C stack, and around it lies what the program calls meanwhile. C++ that looks
    through the whole stack, as PyTorch does for each error that it raises, crashed where that had changed since the
    greenlet began. So make this above the loop, in a call that lasts as long: what lies there then stays the same.
    """

    def __init__(self) -> None:
        self.is_free = False
        self.greenlet = greenlet(self._serve)
        self.greenlet.switch()

    def _serve(self) -> None:
        while True:
            self.is_free = True
            function = getcurrent().parent.switch()
            self.is_free = False
            function()

    def end(self) -> None:
        """End the coroutine; a function that runs in it ends with GreenletExit."""
        self.is_free = False
        if not self.greenlet.dead:
            self.greenlet.parent = getcurrent()
            self.greenlet.throw()


class LoopRecording(Generic[Result]):
    """Run a recorder as a coroutine of a loop, whose steps each run once, as they would have run.

    record: calls its argument for each step and returns its result; the call returns what the loop gave to `step`.
    coroutine: to run it in, if it is free; None: one that begins with the recording. result: of `record`, None until it
    has returned. error: that ended it. is_recorder: True in what the recorder runs, False in the loop.
    """

    def __init__(self, record: Callable[[Callable[[], object]], Result], coroutine: Coroutine | None = None) -> None:
        self._record = record
        self._coroutine = coroutine
        self._is_closed = False
        self._recorder: greenlet | None = None
        self.result: Result | None = None
        self.error: RooflineError | None = None
        self.is_recorder = False

    @property
    def runs(self) -> bool:
        """True between `start` and the end of the recorder."""
        return self._recorder is not None

    def start(self) -> None:
        """Start the recorder, at the end of a step; the next one is the first that it sees."""
        if self._coroutine is not None and self._coroutine.is_free:
            self._recorder = self._coroutine.greenlet
            self._return_here(self._recorder)
            self._recorder.switch(self._run)
        else:
            self._recorder = greenlet(self._run)
            self._recorder.switch()

    def step(self, results: object = ()) -> None:
        """Mark the end of a step. results: of the step, which the recorder awaits where steps are asynchronous."""
        recorder = self._recorder
        if recorder is not None:
            self._return_here(recorder)
            recorder.switch(results)

    def close(self) -> None:
        """End a recorder that has not finished, and remove its hooks."""
        if self._recorder is not None and not self._recorder.dead:
            self._is_closed = True
            self._return_here(self._recorder)
            self._recorder.throw()  # GreenletExit, at the call of the step: profilers stop on its way out
        self._recorder = None

    @staticmethod
    def _return_here(recorder: greenlet) -> None:
        """Have the recorder go on with what runs now: a loop may run in coroutines of its own."""
        recorder.parent = getcurrent()

    def _run(self) -> None:
        """Record, in the coroutine. An error of the measurement does not end the loop."""
        self.is_recorder = True
        try:
            self.result = self._record(self._run_step)
        except GreenletExit:
            if not self._is_closed:
                raise
        except RooflineError as error:
            self.error = error
        except Exception as error:
            self.error = MeasurementError(f"Profiling steps of a loop failed: {reason(error)}")
        finally:
            self._recorder, self.is_recorder = None, False

    def _run_step(self) -> object:
        """Let the loop go on to the end of its next step; return what it gave to `step`."""
        recorder = self._recorder
        assert recorder is not None
        self.is_recorder = False
        try:
            return recorder.parent.switch()
        finally:
            self.is_recorder = True
