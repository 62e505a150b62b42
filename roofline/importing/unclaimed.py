"""Make ops of the kernels that no op of the framework computes: the innermost call around a launch, or the launch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from roofline.core.cost import unknown
from roofline.costs import kernel_names
from roofline.costs.calls import Call
from roofline.costs.counted import Costed
from roofline.importing.calls import LAUNCH, OP, StepCalls
from roofline.importing.work import foreign_calls
from roofline.importing.work.costs import Costs
from roofline.pytorch.count import Generated
from roofline.pytorch.nodes import Nodes
from roofline.traces import nesting
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.rows import Rows

REPLAYED = "replayed from a graph, which does not say for which op: import with --capture, or record a step without"
OUTSIDE = "launched by code that is no op of the framework"


def lost(kernel: str, why: str) -> Costed:
    """The cost of a kernel without an op: its class by its name, its work unknown."""
    return Costed(
        cost=unknown(why), kind="kernel", op_class=kernel_names.classify(kernel), shapes="", dtype=None, output=None
    )


def longest(trace: KinetoTrace, events: Rows, owner: Rows) -> dict[int, str]:
    """For each owner (but -1) the name of the kernel that took most of its time."""
    rows = np.flatnonzero(owner >= 0)
    pairs, place = np.unique(np.stack([owner[rows], trace.device.name[events[rows]]]), axis=1, return_inverse=True)
    time = np.bincount(place.ravel(), weights=trace.device.duration[events[rows]], minlength=pairs.shape[1])
    order = np.argsort(time, kind="stable").tolist()
    return {int(pairs[0, column]): trace.names[int(pairs[1, column])] for column in order}


def unclaimed(
    trace: KinetoTrace,
    links: Links,
    device_events: Rows,
    step: StepCalls,
    nodes: Nodes,
    costs: Costs,
    foreign: Mapping[int, Generated],
) -> dict[int, Generated]:
    """Make ops of their own for those of `device_events` that no op of the framework's computes.

    foreign: the calls that are known to be no ops of torch's, by node.
    The innermost call around a launch, where it holds nothing else that has work; else the launch itself. A graph is
    one op for now, to be taken apart.
    """
    is_op = nodes.is_op.copy()
    is_op[list(foreign)] = True
    unit = nesting.outermost(nodes.parent, is_op)
    unit = np.append(unit, -1)
    op = step.index(OP, len(trace.ops))[links.op[device_events]]
    launch = step.index(LAUNCH, len(trace.launches))[links.launch[device_events]]
    free = (unit[op] < 0) & (unit[launch] < 0)
    by_graph = links.graph[device_events]
    graphs = np.unique(launch[by_graph & (launch >= 0) & (unit[launch] < 0)])
    inner = np.unique(op[free & ~by_graph & (op >= 0)])
    holds = _holders(nodes.parent, np.concatenate([np.flatnonzero(unit[:-1] >= 0), inner, graphs]))
    leaf = np.append(np.zeros(len(nodes), bool), False)
    leaf[inner] = ~holds[inner]
    generated: dict[int, Generated] = {}
    owner = np.where(free & ~by_graph, np.where(leaf[op], op, launch), -1)
    owners, first = np.unique(owner, return_index=True)
    event_of = dict(zip(owners.tolist(), device_events[first].tolist(), strict=True))
    for index, name in longest(trace, device_events, owner).items():
        if step.table[index] == OP:
            generated[index] = foreign_calls.generated(nodes.names[index], _inside(nodes.call(index), costs, name))
        else:
            generated[index] = foreign_calls.generated(
                name, foreign_calls.lone(trace, event_of[index]) or lost(name, OUTSIDE)
            )
    return generated | {
        index: foreign_calls.generated(nodes.names[index], lost("", REPLAYED)) for index in graphs.tolist()
    }


def _holders(parent: Rows, nodes: Rows) -> NDArray[np.bool_]:
    """Mark the nodes that hold one of `nodes` below them: bool[parent]."""
    holds = np.zeros(len(parent), bool)
    current = np.unique(parent[nodes])
    while len(current := current[current >= 0]):
        current = current[~holds[current]]
        holds[current] = True
        current = np.unique(parent[current])
    return holds


def _inside(call: Call, costs: Costs, kernel: str) -> Costed:
    """A call that is no op by the rules and launches kernels itself, as a wrapper with a kernel of its own does."""
    if "::" in call.name:
        costed = costs.cost(call)
        if not costed.view:
            return costed
    return lost(kernel, f"the work of {call.name[:80]} is not known")
