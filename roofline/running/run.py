"""Run a program with all boundaries in place, and say what was seen of its steps."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from weakref import WeakSet

from roofline.core.schema import Profile
from roofline.core.vocabulary import FRAMEWORKS
from roofline.errors import MeasurementError, reason
from roofline.measuring.in_loop import Coroutine
from roofline.recording.recording import Say
from roofline.running.boundaries import INTERRUPTIONS, ORDER
from roofline.running.boundary import Boundary
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measured, Measurement, Wanted
from roofline.running.program import WatchedProgram
from roofline.running.steps import Steps
from roofline.units import seconds

_CURE = (
    "Name what is a step: `--step module.path:function`, or call roofline.step() at the end of each one in the program."
)
#: Calls that are listed where no step was found. By choice.
_LISTED = 6
_SHORTER = "let it run more of them, or have fewer measured, as with --steps 5:50."
#: What is watched in this process; in one that it forks nothing is.
_WATCHED: WeakSet[Steps] = WeakSet()


def _close_all() -> None:
    for steps in tuple(_WATCHED):
        steps.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


@dataclass(frozen=True, slots=True)
class Ended:
    """Hold how a program ended, and what was seen of it.

    error: that ended it, SystemExit as well; None: its end was reached. own_process: False in a process that the
    program forked, which has nothing to report.
    """

    error: BaseException | None
    own_process: bool
    steps: Steps

    @property
    def measurement(self) -> Measurement:
        """Return that of the program's first loop."""
        return self.steps.measurement

    @property
    def measured(self) -> list[tuple[int, Measured]]:
        """List what was measured, as (number of the loop, measurement)."""
        return [(number, taken) for number, loop in self._loops() for taken in loop.measurement.measured]

    def _loops(self) -> Iterator[tuple[int, Steps]]:
        return enumerate(self.steps.loops, 1)

    @property
    def failed(self) -> bool:
        """True if the program's exit code is not 0."""
        if isinstance(self.error, SystemExit):
            return self.error.code not in (None, 0)
        return self.error is not None

    def sentences(self) -> list[str]:
        """Say what a step is, and which steps were left out of the measurement."""
        choice = self.steps.choice
        if choice is None:
            return []
        told = [f"a step: {choice.phrase}, {choice.seen} seen"]
        for kind, aside in choice.kinds.asides.items():
            mean = f", {seconds(aside.seconds / aside.timed)} each" if aside.timed else ""
            told.append(f"left out: {aside.steps} with {kind}{mean}")
        for number, loop in self._loops():
            if loop.measurement.error is not None and (number > 1 or loop.measurement.measured):
                of_loop = f" of loop {number}" if number > 1 else ""
                told.append(f"the last measurement{of_loop} failed: {loop.measurement.error}")
        return told

    def profiles(self, command: str, cure: str = _CURE, shorter: str = _SHORTER) -> list[Profile]:
        """Make those of all that was `measured`. Raises MeasurementError with what was seen where nothing was.

        cure: what helps where no step was found; shorter: where the program ended too early.
        """
        profiles = self.measurement.profiles(command)
        if profiles:
            for loop in self.steps.loops[1:]:
                profiles += _further_profiles(loop.measurement, command)
            return profiles
        if self.measurement.error is not None:
            raise self.measurement.error
        if self.measurement.was_blocked is not None:
            raise MeasurementError(
                f"No step was measured: the program runs {self.measurement.was_blocked} itself, and a process can have "
                "one profiler at a time. Run it without."
            )
        choice = self.steps.choice
        if choice is not None:
            raise MeasurementError(f"The program ended after {choice.seen} steps, before all was measured: {shorter}")
        elsewhere, called = self.steps.elsewhere, self.steps.called
        if elsewhere:
            raise MeasurementError(
                f"The program's steps end in another thread than its first one ({_listed(elsewhere)}), where they "
                "cannot be measured: run them in the first one, or name a function that it calls for each with --step."
            )
        seen = f"seen were {_listed(called)}" if called else "no call of a framework's was seen"
        raise MeasurementError(f"No step was found, as nothing repeats: {seen}. {cure}")


def _further_profiles(measurement: Measurement, command: str) -> list[Profile]:
    """Make the profiles of a loop behind the first one, whose profile is not to be lost if this fails."""
    try:
        return measurement.profiles(command)
    except Exception as error:
        measurement.say(f"no profile: {reason(error)}")
        measurement.measured.clear()
        return []


def _listed(calls: Counter[str]) -> str:
    return ", ".join(f"{name} {count}x" for name, count in calls.most_common(_LISTED))


def boundaries() -> tuple[Boundary, ...]:
    """Load all boundaries in their order, those that end no step last. Loads no framework."""
    return tuple(import_module(f"roofline.running.boundaries.{name}").BOUNDARY for name in (*ORDER, *INTERRUPTIONS))


def run(program: WatchedProgram, wanted: Wanted, say: Say, kinds: Sequence[Boundary]) -> Ended:
    """Run a program to its end, and measure steps of it meanwhile. say: writes a line to the user."""
    process = os.getpid()
    imports, coroutine = AfterImport(say), Coroutine()
    steps = Steps(kinds, Measurement(wanted, program.name, say, coroutine), imports)
    for rank, boundary in enumerate(kinds):
        # What waits for no library may look at once, as behind a module that there always is.
        imports.call(boundary.module or "sys", partial(boundary.watch, steps.watcher(rank)))
    for framework in FRAMEWORKS:
        imports.call(framework, partial(_load_recorder, framework))
    imports.install()
    _WATCHED.add(steps)
    error = _error_of(program.run)
    steps.close()
    imports.remove()
    steps.remove_hooks()
    own_process = os.getpid() == process
    if own_process:
        for loop in steps.loops:
            loop.measurement.close()
        coroutine.end()
    return Ended(error, own_process, steps)


def _load_recorder(framework: str) -> None:
    from roofline.measuring.in_process import load_recorder

    with suppress(Exception):  # the measurement will import it again, and say what is wrong
        load_recorder(framework)


def _error_of(function: Callable[[], None]) -> BaseException | None:
    try:
        function()
    except BaseException as error:
        return error
    return None
