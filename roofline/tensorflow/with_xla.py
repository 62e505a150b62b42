"""A TensorFlow step: nodes that the executor runs, instructions of what XLA compiled, or both in one program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from roofline.core.schema import Storages
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
    line: graph.Line = lambda name: None,
) -> tuple[Counted, list[Owned]]:
    """The ops of the steps that `prefix` marks in `traces`, nodes first, and whose each event is.

    graphs: of the functions of the step. before: unoptimised programs, as in `roofline.xla.count`. optimizers: top
    scopes whose ops are the optimizer's. allocations: of the nodes of a step. line: names that of a node.
    An event of the executor that holds
    instructions is none: they are what ran.
    """

    @lru_cache(maxsize=65536)
    def place(op_name: str) -> Place:
        if not op_name or op_name.startswith(_EDGES):
            return Place(FORWARD, None)
        return graph_scopes.place(op_name, optimizers)

    nodes, by_node = graph.count(traces, prefix, graphs, optimizers, allocations, line)
    instructions, by_instruction = xla.count(
        traces,
        prefix,
        before,
        optimizers,
        place,
        lambda module, instruction: line(instruction.op_name) if instruction.op_name else None,
    )
    # Instructions of a program that the trace does not hold are no ops, but their time is not idle either.
    owned = [_both(*pair, len(nodes.ops)) for pair in zip(by_node, by_instruction, strict=True)]
    if not instructions.ops:
        return nodes, owned
    if not nodes.ops:
        return instructions, owned
    return _joined(nodes, instructions), owned


def _joined(nodes: Counted, instructions: Counted) -> Counted:
    """The ops of both, with buffers of their own: a node's tensors are not known to XLA's program."""
    first = 1 + max((number for op in nodes.ops for number in (*op.reads, *op.writes)), default=-1)
    # Programs say where buffers lie in their allocations, and not where those lie: here behind all that nodes have.
    end = max(
        (nodes.addresses.get(number, 0) + int(size) for op in nodes.ops for number, size in op.touched()), default=0
    )
    moved = tuple(
        type(op)(
            node=op.node + len(nodes.names),
            costed=op.costed,
            reads=tuple(number + first for number in op.reads),
            writes=tuple(number + first for number in op.writes),
            times=op.times,
            line=op.line,
        )
        for op in instructions.ops
    )
    scopes = tuple(dict.fromkeys((*nodes.scopes, *instructions.scopes)))
    place = np.asarray([scopes.index(scope) for scope in instructions.scopes], np.int64)
    return Counted(
        names=(*nodes.names, *instructions.names),
        thread=np.concatenate((nodes.thread, instructions.thread)),
        parent=np.full(len(nodes.names) + len(instructions.names), -1, np.int64),
        op_of=np.concatenate((nodes.op_of, instructions.op_of + len(nodes.ops))),
        view_of=np.concatenate((nodes.view_of, instructions.view_of)),
        ops=(*nodes.ops, *moved),
        names_of_ops=(*nodes.names_of_ops, *instructions.names_of_ops),
        scopes=scopes,
        scope=np.concatenate((nodes.scope, place[instructions.scope])),
        phase=np.concatenate((nodes.phase, instructions.phase)),
        unknown={**nodes.unknown, **instructions.unknown},
        flags=tuple(dict.fromkeys((*nodes.flags, *instructions.flags))),
        devices=max(nodes.devices, instructions.devices),
        storages=_shifted(instructions.storages, len(nodes.ops)),
        addresses={**nodes.addresses, **{number + first: end + at for number, at in instructions.addresses.items()}},
    )


def _shifted(storages: Storages | None, ops: int) -> Storages | None:
    """Return the storages of programs in a step that runs ops before them, whose memory is not known."""
    if storages is None:
        return None
    first, last = (tuple(row + ops for row in column) for column in (storages.first, storages.last))
    return msgspec.structs.replace(storages, first=first, last=last, at_least=True)


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
