"""What a backend is: a description, which each file of roofline/backends/ holds as `BACKEND`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from roofline import plugins
from roofline.core.schema import Api
from roofline.core.step import Mode, Step
from roofline.core.switch import Switch
from roofline.errors import InputError
from roofline.recording.recording import Check, Plan, Recording, Say

#: From threads, device and the options given to the variables that must be set before a framework is imported.
Environment = Callable[[int | None, str, Mapping[str, str]], dict[str, str]]
#: From what builds a step, the name of a switch and what it is set to, to the step that is run then.
Turn = Callable[[Callable[[], Step], str, str], Step]
#: From a step, how many steps are timed, and whether the data lies in memory as batches.
TimedApi = Callable[[Step, int, bool], Api]


class NeedsData(Exception):
    """A step whose arrays have no data asked for their numbers, or does what they say; what of it, as "its numbers"."""


class Recorder(Protocol):
    """Runs and records steps of one framework, which is imported inside these methods only."""

    def devices(self) -> tuple[str, ...]:
        """What the framework can run on here, "cpu" first."""

    def profiled_environment(self, device: str) -> dict[str, str]:
        """Variables that the profiled run alone must have; plain steps then get a process of their own."""

    def record(self, step: Step, plan: Plan, say: Say) -> Recording:
        """The T, P and C runs. What the step raises passes through."""

    def verify(self, step: Step) -> list[Check]:
        """Our FLOPs beside those of independent references."""


def _as_given(options: Mapping[str, str]) -> dict[str, str]:
    return dict(options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One way to run a step.

    framework: the distribution whose ops run, as "torch"; backends that share it have switches of the same names and
    one launch floor. written_in: of a library that lies on it and that programs are written with, as "keras".
    requires: modules without which it does not run at all. extras: of our installation; the first one holds what its
    models are made of, any others what those run on. models: the package of its models. options: what `--backend
    name:option=value` takes. switches: those that take a cause of slowness away, for `compare --prove`; own_switches:
    those of a step that is the user's own, which takes no options. turn: sets one of the latter, by its name in
    `Switch.in_step`, in the measuring process, where it builds the step or after that. model_options: from the options
    given to what the models are told. without_data: while active, arrays have no data, so that models of any size can
    be counted; None where there is no such thing. apis: functions of a library that published benchmarks timed, by the
    names that presets have for them. refuses: modes that no model of ours has on it, each with the
    sentence that says so before anything is built.
    """

    framework: str
    written_in: str | None = None
    requires: tuple[str, ...]
    extras: tuple[str, ...]
    models: str
    recorder: Recorder
    environment: Environment
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    switches: tuple[Switch, ...] = ()
    own_switches: tuple[Switch, ...] = ()
    turn: Turn | None = None
    without_data: Callable[[], AbstractContextManager[None]] | None = None
    model_options: Callable[[Mapping[str, str]], dict[str, str]] = _as_given
    apis: Mapping[str, TimedApi] = field(default_factory=dict)
    refuses: Mapping[Mode, str] = field(default_factory=dict)


def check_mode(backend: Backend, mode: Mode) -> None:
    """Raises InputError for a mode in which no model of ours runs on this backend."""
    if mode in backend.refuses:
        raise InputError(backend.refuses[mode])


def load(name: str) -> Backend:
    """The backend of that name. Raises InputError with the alternatives where there is none."""
    backend: Backend = plugins.load("roofline.backends", name, "backend").BACKEND
    return backend
