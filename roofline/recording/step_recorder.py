"""What the framework of a step offers to the protocol of a measurement (`record`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from roofline.core.device import Ceiling
from roofline.core.schema import Compilation, Memory, Wall
from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.recording.clocks import Clocks
from roofline.recording.contention import System, Usage
from roofline.recording.rows import OpTables
from roofline.timing.timed import Timed

#: What a profiler leaves of some steps; what it is only the recorder of its framework knows.
Trace = TypeVar("Trace")

#: Of a step that only makes views, or nothing.
NO_WORK = "The step ran no op that does work, so there is nothing to profile."


@dataclass(frozen=True, slots=True)
class Plain:
    """The T run: wall times, and how the machine behaved during it.

    asleep: how long the thread that dispatches slept in a step, or waited for others than its own ops [s]; None where
    nobody looked. ran: how many steps `system` and `compiling` are of. compiling: how long programs were
    compiled in them [s], None where nobody counts it. ceilings: memory bandwidth, the better of right before and right
    after.
    """

    wall: Wall
    usage: Usage
    clocks: Clocks
    system: System
    ran: int = 0
    compiling: float | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)
    asleep: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The C and P runs: the ops of a step, their times or None where they were only counted.

    ceilings: those that were measured for these ops: the launch floor of their executor, the rates of functions.
    """

    counted: Counted
    timed: Timed | None = None
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)


class StepRecorder(Protocol[Trace]):
    """How one framework runs, profiles, counts and times one step; made anew for each recording.

    Methods are called in the order in which they stand here.
    """

    @property
    def in_turns(self) -> bool:
        """Whether plain and profiled steps take turns; else the profiled ones lie between two halves of plain ones."""

    @property
    def queued(self) -> int:
        """Steps that each stretch of plain steps runs untimed to fill a queue, and that `Plain.ran` is to hold."""

    def scopes(self) -> AbstractContextManager[object]:
        """Around the whole recording: what makes `roofline.scope` name ops, where that must hold in every step."""

    def first(self, step: Step) -> float:
        """Run the first step, which builds and compiles, and keep what it shows of that [s]."""

    def count(self, step: Step) -> Counted:
        """Count one step, when nothing is to be timed."""

    def prepare(self, step: Step) -> None:
        """What goes before the warm-up of a run that is profiled: a C run of its own, the profiler's first start."""

    def timed(self, step: Step) -> float:
        """One step until the device is done [s]."""

    def note_memory(self, step: Step) -> None:
        """Keep the memory at its peak so far, for `memory`; a later call replaces an earlier one."""

    def probing_threads(self) -> int | None:
        """The threads that memory bandwidth is measured with; None: those that torch has in this process."""

    def compiling(self) -> float | None:
        """How long this process has compiled programs so far [s]; None where nobody counts it."""

    def steady(self, step: Step, steps: int) -> list[float]:
        """`steps` plain steps back to back [s each]."""

    def profiled(self, step: Step, steps: int, settling: int) -> Trace:
        """`steps` steps under the profiler, each in an annotation `STEP`, after `settling` ones that do not count."""

    def work(self, traces: Sequence[Trace], typical: float) -> Work:
        """The ops of the profiled steps and their times; typical: the median plain step [s]."""

    def threads(self) -> int:
        """The CPU threads of this process."""

    def contended(self, usage: Usage) -> bool:
        """Whether somebody else used the cores that this process needed."""

    def mechanism(self, timed: Timed) -> str:
        """What launches the ops, as `Profiled.mechanism` names it."""

    def memory(self, step: Step) -> Memory:
        """What is known of the memory of the process and of the step."""

    def versions(self) -> dict[str, str]:
        """Versions of what decides how fast a step is."""

    def switches(self, step: Step) -> dict[str, str]:
        """The switches that change what runs: of the process, of the step, of what compiles it."""

    def environment(self) -> dict[str, str]:
        """Threads and affinity of this process, and the variables that steer them."""

    def conditions(self, plain: Plain, work: Work) -> dict[str, float]:
        """What only this recorder knows of the conditions of the T run."""

    def flags(self, step: Step, work: Work) -> tuple[str, ...]:
        """What a reader must know of how the ops were counted and timed."""

    def compilation(self, rows: OpTables) -> Compilation | None:
        """What a compiler did, as far as it is known when the rows of the profile are made."""
