"""Measure some steps of a running program, as soon as they are found, and make profiles of them at its end."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from roofline.core.schema import Profile
from roofline.core.step import Step
from roofline.core.vocabulary import FRAMEWORKS
from roofline.errors import InputError, MeasurementError, RooflineError, reason
from roofline.measuring.in_loop import LEFT_ALONE, Coroutine, LoopRecording
from roofline.recording import protocol
from roofline.recording.recording import Recording, Say

#: Loops of a program that are measured, unless its steps are named. By choice: an odd program may have any number.
MOST_LOOPS = 4


class Stopped(SystemExit):
    """End the program, since all is measured that was asked for (`--stop`)."""

    def __init__(self) -> None:
        super().__init__(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Say which steps to measure.

    first: number of steps that are left alone. last: of the last step that may be measured; None: any. every: measure
    again as many steps after a measurement began; None: once. stop: end the program after that. loops: of the program
    that are measured, at most.
    """

    first: int = LEFT_ALONE
    last: int | None = None
    every: int | None = None
    stop: bool = False
    loops: int = 1

    def __post_init__(self) -> None:
        if self.first < 0:
            raise InputError(f"--steps cannot begin with {self.first}: give at least 0.")
        if self.last is not None and self.last - self.first < _least():
            raise InputError(
                f"--steps {self.first}:{self.last} are too few to time, profile and count a step: give at least "
                f"{self.first}:{self.first + _least()}."
            )
        if self.every is not None and self.stop:
            raise InputError("--every and --stop exclude each other: give one of them.")
        if self.every is not None and self.every < _least():
            raise InputError(f"--every {self.every} is too often: a measurement takes up to {_least()} steps.")

    def numbers(self) -> tuple[int | None, int | None]:
        """Choose how many plain steps and profiled ones fit into those that may be measured; None: the default."""
        if self.last is None:
            return None, None
        room = self.last - self.first
        many, few = (protocol.profiled_steps(0.0, plain) for plain in (protocol.CPU_STEPS, protocol.CPU_LEAST))
        counts = (many, few, protocol.CPU_LEAST)
        profiled = next(count for count in counts if room >= _steps_for(protocol.CPU_LEAST, count))
        plain = range(protocol.CPU_LEAST, protocol.CPU_STEPS + 1)
        return max(count for count in plain if room >= _steps_for(count, profiled)), profiled


def _least() -> int:
    return _steps_for(protocol.CPU_LEAST, protocol.CPU_LEAST)


def _steps_for(plain: int, profiled: int) -> int:
    """Return how many steps of a loop a measurement takes at most, see `recording.record`."""
    first, counted = 1, 2
    before = first + counted + protocol.warm_up("cuda", 0.0)
    after = protocol.SINGLE_STEPS + protocol.watched_steps(0.0)
    stretches = plain + min(plain, (profiled + 1) * protocol.settling_plain(0.0))
    return before + stretches + profiled * (1 + protocol.settling(0.0)) + after


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Hold a recording. first, last: numbers of the steps that it took. model: its name."""

    recording: Recording
    first: int
    last: int
    backend: str
    device: str
    model: str


class Measurement:
    """Run recordings as coroutines of the program, one at a time, and keep them.

    running: the recording that runs now, or None. measured, error: what came of those before.
    """

    def __init__(self, wanted: Wanted, program: str, say: Say, coroutine: Coroutine | None = None) -> None:
        """Program: its name, for a profile whose model is not known. say: writes a line to the user.

        coroutine: for the recordings, see `LoopRecording`.
        """
        self.wanted, self._program, self.say, self._coroutine = wanted, program, say, coroutine
        self.running: LoopRecording[tuple[Recording, str]] | None = None
        self._began = 0
        self._next = wanted.first
        self._about: tuple[str, str] = ("", "")
        self._blocked: str | None = None
        self.was_blocked: str | None = None
        self.measured: list[Measured] = []
        self.error: RooflineError | None = None

    def another(self, say: Say) -> Measurement:
        """Make the measurement of a further loop."""
        measurement = type(self)(self.wanted, self._program, say, self._coroutine)
        measurement.block(self._blocked)
        return measurement

    @property
    def done(self) -> bool:
        """True if no further step is to be measured."""
        return self.error is not None or (bool(self.measured) and self.wanted.every is None)

    @property
    def settled(self) -> bool:
        """True if something came of a measurement: the steps stay those that it took."""
        return bool(self.measured) or self.error is not None

    def block(self, by: str | None, here: bool = True) -> None:
        """Measure nothing while another profiler runs; None: it no longer does. A recording begins anew.

        here: False in another thread than that of the recording, which then ends with the step.
        """
        self._blocked = by
        if by is not None:
            self.was_blocked = by
            if here:
                self.close()

    def discard(self) -> None:
        """End a recording, before anything was measured, as the steps turned out to be others."""
        self.close()
        self._next = self.wanted.first

    def fail(self, error: Exception, here: bool = True) -> None:
        """End a recording, and measure nothing any more. here: as of `block`."""
        if here:
            self.close()
        self.error = MeasurementError(f"Following the program's steps failed: {reason(error)}")

    def close(self) -> None:
        """End a recording that has not finished."""
        if self.running is not None:
            self.running.close()
            self.running = None

    @property
    def due(self) -> float:
        """Number of the step with whose end a measurement may begin, or the program ends; infinity: there is none."""
        if self.done:
            return 0 if self.wanted.stop else math.inf
        return self._next

    def step_ended(self, number: int, results: tuple[object, ...], begin: Callable[[], None]) -> None:
        """Take the end of a step, and begin when it is time.

        Raises Stopped, out of the program's own call, when all is measured and the program is to end.
        """
        if self._blocked is not None or self.error is not None:
            self.close()
        if self.running is not None:
            self.running.step(results)
        elif not self.done and self._blocked is None and number >= self._next:
            begin()
        if self.running is not None and not self.running.runs:
            self._ended(number, self.running)
        if self.wanted.stop and self.done:
            raise Stopped

    def begin(self, step: Step, backend: str | None, number: int) -> None:
        """Begin a recording at the end of the program's step of this number.

        step: what is known of the steps; its `run` is replaced. backend: that records them, None: by the framework.
        """
        from roofline.measuring.in_process import record_loop

        chosen = _backend(backend)
        plain, profiled = self.wanted.numbers()

        def record(run: Callable[[], object]) -> tuple[Recording, str]:
            if not chosen:
                raise MeasurementError("The program has imported no framework that roofline measures.")
            return record_loop(replace(step, run=run), chosen, plain, profiled, lambda text: None)

        self._began, self._next = number, number + (self.wanted.every or 0)
        self._about = (chosen, self._program if step.model is None else _name(step.model))
        self.running = LoopRecording(record, self._coroutine)
        self.running.start()

    def _ended(self, number: int, running: LoopRecording[tuple[Recording, str]]) -> None:
        """Keep a recording that has ended, or its error."""
        self.running = None
        if running.error is not None:
            self.error = running.error
        elif running.result is not None:
            (recording, device), (backend, model) = running.result, self._about
            for note in recording.notes:
                self.say(f"not known: {note}")
            self.measured.append(
                Measured(
                    recording=recording,
                    first=self._began + 1,
                    last=number,
                    backend=backend,
                    device=device,
                    model=model,
                )
            )
            self.say(f"measured in steps {self._began + 1} to {number}")

    def profiles(self, command: str) -> list[Profile]:
        """Make profiles of all recordings, under this machine's ceilings."""
        if not self.measured:
            return []
        from roofline.measuring.in_process import as_profile

        return [
            as_profile(item.recording, item.backend, item.device, item.model, command, self.say)
            for item in self.measured
        ]


def _backend(asked: str | None) -> str:
    """Return the backend that records steps of a boundary's; "" where the program has imported no framework of any.

    Keras's own where the program has imported Keras, and it runs on the framework.
    """
    backend = asked or next((name for name in FRAMEWORKS if name in sys.modules), "")
    keras = getattr(sys.modules.get("keras"), "backend", None)
    engine = keras.backend() if keras is not None else None
    if backend in ("keras", "tensorflow") and "tf_keras" in sys.modules:
        return "keras2"
    return f"keras-{engine}" if backend == "keras" or (backend == engine and backend != "torch") else backend


def _name(model: Any) -> str:
    """Name a model by its class; that around a compiled one has the name of what it holds."""
    return type(getattr(model, "_orig_mod", model)).__name__
