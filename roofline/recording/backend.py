"""Define a backend: a description that each file of roofline/backends/ holds as `BACKEND`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from roofline import plugins
from roofline.core.schema import Api
from roofline.core.step import Mode, Step
from roofline.core.switch import Switch
from roofline.errors import InputError
from roofline.recording.inputs import Input
from roofline.recording.recording import Check, Plan, Recording, Say

#: (threads, device, options) -> the variables that must be set before a framework is imported.
Environment = Callable[[int | None, str, Mapping[str, str]], dict[str, str]]
#: (function that builds a step, name of a switch, its value) -> the step with the switch set.
Turn = Callable[[Callable[[], Step], str, str], Step]
#: (step, number of timed steps, whether the data lies in memory as batches) -> the timed API.
TimedApi = Callable[[Step, int, bool], Api]


#: (module or function, its inputs, device) -> the step that calls it with inputs made.
CallWithInputs = Callable[[Callable[..., object], Sequence[Input], str], Step]


class NeedsData(Exception):
    """Report that a step whose arrays have no data needs it; the text names the need, as "its numbers"."""


class Recorder(Protocol):
    """Run and record steps of one framework, which is imported inside these methods only."""

    def devices(self) -> tuple[str, ...]:
        """List the devices that the framework can run on here, "cpu" first."""

    def profiled_environment(self, device: str) -> dict[str, str]:
        """Return variables that only the profiled run must have; plain steps then get a process of their own."""

    def load(self) -> None:
        """Import most of what `record` would import for any step. The framework has been imported."""

    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """Do the T, P and C runs. Exceptions of the step pass through."""

    def verify(self, step: Step) -> list[Check]:
        """Compare our FLOPs with those of independent references."""


def _as_given(options: Mapping[str, str]) -> dict[str, str]:
    return dict(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Describe a way to run a step.

    framework: the distribution whose ops run, as "torch"; backends that share it have switches of the same names and
    one launch floor. written_in: the high-level library of the programs, as "keras", if any. requires: modules without
    which the backend does not run. prepares: further modules that recording loads for any step: a process that forks
    others loads them, too. None: nobody has shown that forks measure the same (benchmarks/forks.py), so that all
    processes are fresh. extras: of our installation; the first holds the library of the models, the others what that
    runs on. models: the package of its models. options: the options and values of `--backend name:option=value`.
    switches: those that remove a cause of slowness, for `compare --prove`; own_switches: those of a user's own step,
    which takes no options. turn: sets one of the latter, by its name in `Switch.in_step`, in the measuring process,
    while or after the step is built. model_options: maps the user's options to those of the models. call_with_inputs:
    makes the step of a module or a function of the user's by the shapes of its inputs; None: it makes none.
    without_data: a context in which arrays have no data, so that models of any size can be counted; None if there is
    none. apis: functions of a library that published benchmarks timed, by their names in presets. refuses: modes for
    which we have no model on this backend, each with the sentence of the error.
    """

    framework: str
    written_in: str | None = None
    requires: tuple[str, ...]
    prepares: tuple[str, ...] | None = None
    extras: tuple[str, ...]
    models: str
    recorder: Recorder
    environment: Environment
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    switches: tuple[Switch, ...] = ()
    own_switches: tuple[Switch, ...] = ()
    turn: Turn | None = None
    call_with_inputs: CallWithInputs | None = None
    without_data: Callable[[], AbstractContextManager[None]] | None = None
    model_options: Callable[[Mapping[str, str]], dict[str, str]] = _as_given
    apis: Mapping[str, TimedApi] = field(default_factory=dict)
    refuses: Mapping[Mode, str] = field(default_factory=dict)


def check_mode(backend: Backend, mode: Mode) -> None:
    """Check a mode. Raises InputError for one in which no model of ours runs on this backend."""
    if mode in backend.refuses:
        raise InputError(backend.refuses[mode])


def load(name: str) -> Backend:
    """Load a backend by name. Raises InputError with the alternatives where there is none."""
    backend: Backend = plugins.load("roofline.backends", name, "backend").BACKEND
    return backend
