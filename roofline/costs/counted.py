"""Tabulate one step, whichever framework ran it: each op with its work, its buffers, its scope and its phase.

Counting fills these tables (aten calls, HLO instructions, TensorFlow nodes), timing and the rows of a profile read
them; nothing here knows a framework.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from roofline.core import vocabulary
from roofline.core.cost import Cost
from roofline.core.schema import Storages
from roofline.core.vocabulary import OpClass

PHASES = vocabulary.PHASES

#: An access: (True for an argument and False for a result, its number among all tensors of that list, bytes).
Access = tuple[bool, int, float]


@dataclass(frozen=True, slots=True)
class Costed:
    """The work of one call.

    reads, writes: one access per distinct tensor touched. view: nothing is computed and nothing moves.
    dtype: that it computes in ("fp32", ...); output: of most bytes that it writes; None where there is no tensor.
    executor: what launches it; "": what launches the ops around it.
    arithmetic: of a product of fp32 inputs, what the program asks for by name ("ieee", "tf32", "bf16"), whatever the
    switches of the process; "" where it leaves that to them.
    layout: "channels_last" where a tensor is laid out so; "": contiguous, or not known.
    parts: what a fused kernel is made of, each with the work and the traffic that it would have alone; empty for an
    op that stands for itself.
    """

    cost: Cost
    kind: str
    op_class: OpClass
    shapes: str
    dtype: str | None
    output: str | None
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    inplace: bool = False
    view: bool = False
    parts: tuple[Costed, ...] = ()
    executor: str = ""
    arithmetic: str = ""
    layout: str = ""


#: Fields of a Costed besides its cost and its parts.
_ATTRIBUTES = tuple(field.name for field in fields(Costed) if field.name not in ("cost", "parts"))


class Interner:
    """Gives one object for equal contents: rows of a profile that share it share a signature."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[object, Costed] = {}

    def __call__(self, costed: Costed) -> Costed:
        """The first one seen that is equal to `costed`."""
        cost = costed.cost
        functions = None if cost.functions is None else tuple(sorted(cost.functions.items()))
        numbers = tuple(getattr(cost, name) for name in cost.__struct_fields__ if name != "functions")
        attributes = tuple(getattr(costed, name) for name in _ATTRIBUTES)
        # Parts were made the same before the whole.
        key = (numbers, functions, attributes, tuple(id(part) for part in costed.parts))
        return self._known.setdefault(key, costed)


@dataclass(frozen=True, slots=True)
class CountedOp:
    """Hold one counted op: which node, its work, and the buffers it reads and writes (storage numbers, -1: unknown).

    times: how often a step runs it, as a loop does, each of the devices that share it for itself; `costed` holds the
    work of all of them.
    places: (scope, phase) of each of its parts, as indices; empty: the op's own.
    line: of the user's program that asked for it, "model.py:88"; None: not known.
    """

    node: int
    costed: Costed
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    times: int = 1
    places: tuple[tuple[int, int], ...] = ()
    line: str | None = None

    def touched(self) -> Iterator[tuple[int, float]]:
        """(buffer, bytes) of each access, reads first."""
        for accesses, buffers in ((self.costed.reads, self.reads), (self.costed.writes, self.writes)):
            yield from zip(buffers, (size for _, _, size in accesses), strict=True)


@dataclass(frozen=True)
class Counted:
    """The calls of one step.

    names, thread, parent: of all calls that a plain profile shows too (our own annotations are left out).
    op_of: for each such call the number of the counted op it is or lies in, or -1.
    view_of: True where the call is, or lies in, an op that does no work.
    ops: the ops that do work, in order. scope, phase: index into `scopes` and `PHASES` for each op.
    unknown: names of ops whose work is not known, and why. flags: what a reader of the counts must know.
    host_reads: how many results the host reads before each op, after the one before it; None: not known.
    updates: whether an optimizer was seen to be applied, which ops that are compiled one by one do not say.
    addresses: buffer -> where its first byte lies [byte]; of buffers that are not in it nobody knows.
    devices: how many share the step; work and buffers are those of all of them together.
    storages: their ops are those of `ops`; None: not recorded.
    """

    names: tuple[str, ...]
    thread: NDArray[np.int64]
    parent: NDArray[np.int64]
    op_of: NDArray[np.int64]
    view_of: NDArray[np.bool_]
    ops: tuple[CountedOp, ...]
    names_of_ops: tuple[str, ...]
    scopes: tuple[str, ...]
    scope: NDArray[np.int64]
    phase: NDArray[np.int64]
    unknown: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    host_reads: NDArray[np.int64] | None = None
    updates: bool = False
    addresses: Mapping[int, int] = field(default_factory=dict)
    devices: int = 1
    storages: Storages | None = None


#: A step of which nothing was counted.
NOTHING = Counted(
    names=(),
    thread=np.zeros(0, np.int64),
    parent=np.zeros(0, np.int64),
    op_of=np.zeros(0, np.int64),
    view_of=np.zeros(0, bool),
    ops=(),
    names_of_ops=(),
    scopes=("",),
    scope=np.zeros(0, np.int64),
    phase=np.zeros(0, np.int64),
)
