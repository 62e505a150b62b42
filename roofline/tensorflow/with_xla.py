"""A TensorFlow step: nodes that the executor runs, instructions of what XLA compiled, or both in one program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from roofline.costs.counted import Counted
from roofline.tensorflow import count as graph
from roofline.tensorflow import scopes as graph_scopes
from roofline.tensorflow.allocations import NONE, Allocations
from roofline.tensorflow.graph.graph import Graphs
from roofline.timing.executor import Owned
from roofline.traces.xplane.reader import XTrace
from roofline.xla import count as xla
from roofline.xla.scopes import FORWARD, Place

#: What XLA calls the arguments and results of a compiled function: no scopes.
_EDGES = ("XLA_Args", "XLA_Retvals", "XLA_")


def count(
    traces: Sequence[XTrace],
    prefix: str,
    graphs: Graphs,
    before: Sequence[tuple[int, str, bytes]] = (),
    optimizers: tuple[str, ...] = ("optimizer",),
    allocations: Allocations = NONE,
) -> tuple[Counted, list[Owned]]:
    """The ops of the steps that `prefix` marks in `traces`, nodes first, and whose each event is.

    graphs: of the functions of the step. before: unoptimised programs, as in `roofline.xla.count`. optimizers: top
    scopes whose ops are the optimizer's. allocations: of the nodes of a step. An event of the executor that holds
    instructions is none: they are what ran.
    """

    @lru_cache(maxsize=65536)
    def place(op_name: str) -> Place:
        if not op_name or op_name.startswith(_EDGES):
            return Place(FORWARD, None)
        return graph_scopes.place(op_name, optimizers)

    nodes, by_node = graph.count(traces, prefix, graphs, optimizers, allocations)
    instructions, by_instruction = xla.count(traces, prefix, before, optimizers, place)
    # Instructions of a program that the trace does not hold are no ops, but their time is not idle either.
    owned = [_both(*pair, len(nodes.ops)) for pair in zip(by_node, by_instruction, strict=True)]
    if not instructions.ops:
        return nodes, owned
    if not nodes.ops:
        return instructions, owned
    return _joined(nodes, instructions), owned


def _joined(one: Counted, other: Counted) -> Counted:
    """The ops of both, with buffers of their own: a node's tensors are not known to XLA's program."""
    first = 1 + max((number for op in one.ops for number in (*op.reads, *op.writes)), default=-1)
    # Programs say where buffers lie in their allocations, and not where those lie: here behind all that nodes have.
    end = max((one.addresses.get(number, 0) + int(size) for op in one.ops for number, size in op.touched()), default=0)
    moved = tuple(
        type(op)(
            node=op.node + len(one.names),
            costed=op.costed,
            reads=tuple(number + first for number in op.reads),
            writes=tuple(number + first for number in op.writes),
            times=op.times,
        )
        for op in other.ops
    )
    scopes = tuple(dict.fromkeys((*one.scopes, *other.scopes)))
    place = np.asarray([scopes.index(scope) for scope in other.scopes], np.int64)
    return Counted(
        names=(*one.names, *other.names),
        thread=np.concatenate((one.thread, other.thread)),
        parent=np.full(len(one.names) + len(other.names), -1, np.int64),
        op_of=np.concatenate((one.op_of, other.op_of + len(one.ops))),
        view_of=np.concatenate((one.view_of, other.view_of)),
        ops=(*one.ops, *moved),
        names_of_ops=(*one.names_of_ops, *other.names_of_ops),
        scopes=scopes,
        scope=np.concatenate((one.scope, place[other.scope])),
        phase=np.concatenate((one.phase, other.phase)),
        unknown={**one.unknown, **other.unknown},
        flags=tuple(dict.fromkeys((*one.flags, *other.flags))),
        devices=max(one.devices, other.devices),
        addresses={**one.addresses, **{number + first: end + at for number, at in other.addresses.items()}},
    )


def _both(node: Owned, instruction: Owned, first: int) -> Owned:
    """The events of nodes and of instructions, whose ops begin at number `first`; no event is both."""
    ran = (instruction.op >= 0) | instruction.lost
    return Owned(
        op=np.where(instruction.op >= 0, instruction.op + first, np.where(ran, -1, node.op)),
        start=np.where(ran, instruction.start, node.start),
        end=np.where(ran, instruction.end, node.end),
        lost=np.where(ran, instruction.lost, node.lost),
        waits=instruction.waits,
        device=node.device or instruction.device,
    )
