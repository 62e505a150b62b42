"""Define the interface of a step's framework to the protocol of a measurement (`record`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from roofline.core.device import Ceiling
from roofline.core.schema import Compilation, Energy, Memory, Wall
from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.recording.clocks import Clocks
from roofline.recording.contention import System, Usage
from roofline.recording.rows import OpTables
from roofline.timing.timed import Timed

#: The profiler's record of some steps; only the recorder of its framework knows its form.
Trace = TypeVar("Trace")

#: Of a step that only makes views, or nothing.
NO_WORK = "The step ran no op that does work, so there is nothing to profile."


@dataclass(frozen=True, slots=True)
class Plain:
    """Hold the T run: wall times, and how the machine behaved during it.

    asleep: how long the dispatching thread slept in a step, or waited for others than its own ops [s]; None where that
    was not measured. ran: the number of steps that `system` and `compiling` cover. compiling: how long programs were
    compiled in them [s], None where that is not counted. ceilings: memory bandwidth, the better of right before and
    right after. energy: of the device in plain steps; None where it is not known.
    """

    wall: Wall
    usage: Usage
    clocks: Clocks
    system: System
    ran: int = 0
    compiling: float | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    asleep: float | None = None
    energy: Energy | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Hold the C and P runs: the ops of a step, and their times or None where they were only counted.

    ceilings: measured for these ops: the launch floor of their executor, the rates of functions.
    """

    counted: Counted
    timed: Timed | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)


class StepRecorder(Protocol[Trace]):
    """Run, profile, count and time a step of one framework; a new recorder is made for each recording.

    Methods are called in the order of this class.
    """

    @property
    def in_turns(self) -> bool:
        """True if plain and profiled steps take turns; else the profiled ones lie between two halves of plain ones."""

    @property
    def queued(self) -> int:
        """Number of untimed steps that fill the queue before each stretch of plain steps; `Plain.ran` includes them."""

    def scopes(self) -> AbstractContextManager[object]:
        """Make `roofline.scope` name ops during the whole recording, where that must hold in every step."""

    def first(self, step: Step) -> float:
        """Run the first step, which builds and compiles, and keep what it shows of that; return its time [s]."""

    def count(self, step: Step) -> Counted:
        """Count a step, in a run that times none."""

    def prepare(self, step: Step) -> None:
        """Prepare a profiled run before its warm-up: by a C run of its own, or the profiler's first start."""

    def timed(self, step: Step) -> float:
        """Time a step until the device is done [s]."""

    def note_memory(self, step: Step) -> None:
        """Keep the memory at its peak so far, for `memory`; a later call replaces an earlier one."""

    def probing_threads(self) -> int | None:
        """Return the number of threads that measure memory bandwidth; None: torch's number in this process."""

    def compiling(self) -> float | None:
        """Return how long this process has compiled programs so far [s]; None where that is not counted."""

    def steady(self, step: Step, steps: int) -> list[float]:
        """Time `steps` plain steps back to back [s each]."""

    def profiled(self, step: Step, steps: int, settling: int) -> Trace:
        """Profile `steps` steps, each in an annotation `STEP`, after `settling` ones that do not count."""

    def work(self, traces: Sequence[Trace], typical: float) -> Work:
        """Read the ops of the profiled steps and their times; typical: the median plain step [s]."""

    def threads(self) -> int:
        """Return the number of CPU threads of this process."""

    def contended(self, usage: Usage) -> bool:
        """Tell whether other processes used the cores that this process needed."""

    def mechanism(self, timed: Timed) -> str:
        """Name the mechanism that launches the ops (`Profiled.mechanism`)."""

    def memory(self, step: Step) -> Memory:
        """Describe the memory of the process and of the step."""

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that decide how fast a step is."""

    def switches(self, step: Step) -> dict[str, str]:
        """Return the switches that change which code runs: of the process, of the step, of its compiler."""

    def environment(self) -> dict[str, str]:
        """Return threads and affinity of this process, and the variables that set them."""

    def conditions(self, plain: Plain, work: Work) -> dict[str, float]:
        """Return the conditions of the T run that only this recorder knows."""

    def flags(self, step: Step, work: Work) -> tuple[str, ...]:
        """Return the flags of counting and timing that a reader must know."""

    def compilation(self, rows: OpTables) -> Compilation | None:
        """Describe the work of a compiler, as far as it is known when the rows of the profile are made."""
