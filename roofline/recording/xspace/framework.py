"""What differs between frameworks that write XSpace: how they wait, profile and read, and what they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from roofline.core.schema import Memory
from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.timing.executor import Owned
from roofline.traces.xplane.reader import XTrace

#: What `Framework.trivial` calls ops of which each reads and writes one number.
LEAST_OP = "an op on one element"


@dataclass(frozen=True, slots=True)
class Read:
    """What the traces of a few profiled steps say: the ops of a step, and which op each event belongs to.

    conditions: what else they say of how the step ran, as a profile keeps it.
    """

    counted: Counted
    owned: Sequence[Owned]
    conditions: Mapping[str, float] = field(default_factory=dict)


class Framework(Protocol):
    """What a framework that writes XSpace offers to the recorder."""

    @property
    def mechanism(self) -> str:
        """The executor whose least op is the launch floor: "xla-thunk", "tensorflow-graph"."""

    @property
    def ahead(self) -> bool:
        """Whether a call returns before its ops have run on a CPU, so that Python goes on meanwhile."""

    def first(self, run: Callable[[], float]) -> float:
        """Run the first step, which builds and compiles, and keep what it shows of that; what `run` returned."""

    def compiling(self) -> float | None:
        """How long this process has compiled programs so far [s]; None where nobody counts it."""

    def wait(self, outputs: object) -> None:
        """Block until `outputs` of a step are there, or what `end` or `token` made of them."""

    def waiter(self, outputs: object) -> Callable[[], object]:
        """What blocks until `outputs` of a step are there: the wait alone, as all it needs is looked up before."""

    def end(self, outputs: object) -> object:
        """What tells that the step which returned `outputs` is done, also when further steps have been enqueued."""

    @property
    def token_program(self) -> str | None:
        """The name of the program that `token` runs; None for a framework without one, whose steps are waited for one
        at a time."""

    def token(self, outputs: object) -> object:
        """The result of a program that the device runs after the step which returned `outputs`."""

    def profiled(self, run: Callable[[], None]) -> bytes:
        """XSpace bytes of what ran inside `run`."""

    def watch_memory(self, run: Callable[[], None]) -> None:
        """Run a step and keep where its results lie, unless traces of other steps tell."""

    def mark(self, name: str) -> AbstractContextManager[object]:
        """An annotation on the host's line of the trace."""

    def scope(self, name: str) -> AbstractContextManager[object]:
        """Names the ops that are made inside it, while a program is traced."""

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """The ops of the traced steps, which annotations with `prefix` mark."""

    def unseen(self, traces: list[XTrace], prefix: str) -> str:
        """Why the traced steps show no op, in one sentence with the cure."""

    def flags(self) -> tuple[str, ...]:
        """What a reader must know of how the steps ran."""

    def trivial(self) -> Mapping[str, Callable[[], object]]:
        """Many ops that do next to nothing, compiled: one run of each kind of them, by what an op does, in words."""

    def function(self, name: str, elements: int, times: int) -> Callable[[], object] | None:
        """A compiled program that evaluates function `name` (ours: "exp", "tanh", ...) on `elements` float32 numbers,
        on each `times` times in a row; None for one that the framework does not have."""

    def versions(self) -> dict[str, str]:
        """Versions of what decides how fast a step is."""

    def switches(self) -> dict[str, str]:
        """The process-wide switches that change what runs."""

    def environment(self) -> dict[str, str]:
        """Affinity of this process, and the variables that steer it."""

    def threads(self) -> int | None:
        """The threads of an op that a program set in this process; None where it set none, or the framework tells no
        such number."""

    def memory(self, step: Step, device: str) -> Memory:
        """What is known about the memory of the process now."""
