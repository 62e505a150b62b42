"""What a trace shows around a call: the kernels that it launched, the calls inside it, and the batch of its step.

Some ops are given less than they use: the weights of experts and the pages of a cache are no arguments of theirs. What
they launch and call inside shows it; how long the sequences of a batch are stands in an annotation of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from roofline.core.batch import Batch
from roofline.costs.calls import Call


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that a call launched. grid: blocks in each dimension, () where not recorded."""

    name: str
    grid: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """See above. inside: calls and kernels in the call, in order of time, without the kernels of ops inside it.

    alike: whether all calls of the step with the same name and arguments launch the same kernels.
    """

    inside: tuple[Call | Kernel, ...] = ()
    batch: Batch | None = None
    alike: bool = True

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the call launched itself."""
        return tuple(event for event in self.inside if isinstance(event, Kernel))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls inside the call."""
        return tuple(event for event in self.inside if isinstance(event, Call))
