"""Define the interface of frameworks that write XSpace: how they wait, profile, read, and describe themselves."""

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

#: Name in `Framework.trivial` for ops that each read and write one number.
LEAST_OP = "an op on one element"


@dataclass(frozen=True, slots=True)
class Read:
    """Hold the content of a few profiled steps' traces: the ops of a step, and which op each event belongs to.

    conditions: further facts of how the step ran, as a profile saves them.
    """

    counted: Counted
    owned: Sequence[Owned]
    conditions: Mapping[str, float] = field(default_factory=dict)


class Framework(Protocol):
    """Offer a framework that writes XSpace to the recorder."""

    @property
    def mechanism(self) -> str:
        """The executor whose least op is the launch floor: "xla-thunk", "tensorflow-graph"."""

    @property
    def ahead(self) -> bool:
        """True if a call returns before its ops have run on a CPU, so that Python goes on meanwhile."""

    def first(self, run: Callable[[], float]) -> float:
        """Run the first step, which builds and compiles, and keep what it shows of that; return the result of `run`."""

    def compiling(self) -> float | None:
        """Return how long this process has compiled programs so far [s]; None where that is not counted."""

    def wait(self, outputs: object) -> None:
        """Block until the `outputs` of a step, or the result of `end` or `token` on them, are computed."""

    def waiter(self, outputs: object) -> Callable[[], object]:
        """Return a call that blocks until the `outputs` of a step are computed; its look-ups are done in advance."""

    def end(self, outputs: object) -> object:
        """Return an object to wait for the end of the step that returned `outputs`, also with more steps enqueued."""

    @property
    def token_program(self) -> str | None:
        """The name of the program that `token` runs; None for a framework without one, which waits for each step."""

    def token(self, outputs: object) -> object:
        """Enqueue a program after the step that returned `outputs`, and return its result."""

    def profiled(self, run: Callable[[], None]) -> bytes:
        """Profile `run` and return XSpace bytes."""

    def watch_memory(self, run: Callable[[], None]) -> None:
        """Run a step and keep the addresses of its results, unless traces of other steps have them."""

    def mark(self, name: str) -> AbstractContextManager[object]:
        """Annotate the host's line of the trace."""

    def scope(self, name: str) -> AbstractContextManager[object]:
        """Name the ops that are made inside it, while a program is traced."""

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """Read the ops of the traced steps, which annotations with `prefix` mark."""

    def unseen(self, traces: list[XTrace], prefix: str) -> str:
        """Explain why the traced steps show no op, in one sentence with the cure."""

    def flags(self) -> tuple[str, ...]:
        """Return the flags of how the steps ran that a reader must know."""

    def trivial(self) -> Mapping[str, Callable[[], object]]:
        """Return compiled programs of many ops that do next to nothing, by what such an op does, in words."""

    def function(self, name: str, elements: int, times: int) -> Callable[[], object] | None:
        """Compile a program that evaluates function `name` (ours: "exp", "tanh", ...) on `elements` float32 numbers.

        It evaluates each number `times` times in a row. None for a function that the framework does not have.
        """

    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that decide how fast a step is."""

    def switches(self) -> dict[str, str]:
        """Return the process-wide switches that change which code runs."""

    def environment(self) -> dict[str, str]:
        """Return the affinity of this process, and the variables that set it."""

    def threads(self) -> int | None:
        """Return the threads of an op that a program set in this process; None if it set none or it is not known."""

    def memory(self, step: Step, device: str) -> Memory:
        """Describe the memory of the process now."""
