"""Executed nodes of TensorFlow's graph mode: from traces and collected graphs to the ops of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from roofline.core.cost import by_index
from roofline.costs.counted import Costed, Counted, CountedOp
from roofline.tensorflow import model_flops
from roofline.tensorflow.allocations import NONE, Allocations, addresses
from roofline.tensorflow.events import Ran, every_node, executed, not_known, owned
from roofline.tensorflow.graph.buffers import Buffers
from roofline.tensorflow.graph.cost import cost, title
from roofline.tensorflow.graph.graph import Graphs, Node
from roofline.tensorflow.places import Places
from roofline.timing.executor import Owned
from roofline.traces.xplane.reader import XTrace
from roofline.xla.scopes import OPTIMIZER

#: From the name of a node to the line of the user's program that asked for it; None: not known.
Line = Callable[[str], str | None]


def count(
    traces: Sequence[XTrace],
    prefix: str,
    graphs: Graphs,
    optimizers: tuple[str, ...] = ("optimizer",),
    allocations: Allocations = NONE,
    line: Line = lambda name: None,
) -> tuple[Counted, list[Owned]]:
    """The ops of the steps that `prefix` marks in `traces`, and whose each event is.

    optimizers: first parts of scopes whose ops are the optimizer's, beside those that begin with "optimizer".
    allocations: of a step. line: names that of a node. Without traces every node counts once, and there are no events.
    """
    ran = executed(traces, prefix, graphs) if traces else every_node(graphs)
    counted = count_nodes(ran, graphs, optimizers, allocations, line)
    hidden = dict.fromkeys(not_known(traces, prefix, ran), "no graph of the step shows it, or several do")
    counted = replace(counted, unknown={**counted.unknown, **hidden})
    ops = {name: int(op) for name, op in zip(counted.names, counted.op_of, strict=True) if op >= 0}
    return counted, [
        owned(trace, ops, {executed_node.event: executed_node.node for executed_node in ran}) for trace in traces
    ]


def count_nodes(
    ran: Sequence[Ran],
    graphs: Graphs,
    optimizers: tuple[str, ...] = ("optimizer",),
    allocations: Allocations = NONE,
    line: Line = lambda name: None,
) -> Counted:
    """Count the ops of nodes whose executions are known."""
    if not ran:  # as of a program that measures the executor: none of it is a node of the step
        graphs = Graphs(())
    places = [Places(function.after, function.before, optimizers) for function in graphs.functions]
    buffers = Buffers([function.after for function in graphs.functions])
    model = model_flops.assign(ran, graphs, places)
    executions = _Executions()
    scopes: dict[str, int] = {}
    rows: list[CountedOp] = []
    op_of, view, scope, phase, names = [], [], [], [], []
    row_of: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for number, executed_node in enumerate(ran):  # of one step, each with its own shapes: not a loop over a trace
        where, node = places[executed_node.function].of(executed_node.node), executed_node.node
        if buffers.copies(executed_node.function, node):
            node = _as_copy(node)
        costed = cost(node, places[executed_node.function].semantic(executed_node.node))
        view.append(costed.view)
        op_of.append(-1 if costed.view else len(rows))
        if costed.view:
            continue
        if costed.cost.quality == "unknown":
            reasons[title(node)] = costed.cost.note
        reads, writes = buffers.of(executed_node.function, executed_node.node, costed)
        if number in model.by_index:
            costed = replace(costed, cost=by_index(costed.cost))
        costed = executions.of(costed, executed_node.times, model.by_row.get(number))
        times = max(1, round(executed_node.times))
        if executed_node.event in row_of:  # a node of another function, whose executions have the name of this one's
            op_of[-1] = row_of[executed_node.event]
            rows[op_of[-1]] = _together(rows[op_of[-1]], CountedOp(number, costed, reads, writes, times))
            continue
        row_of[executed_node.event] = len(rows)
        rows.append(CountedOp(number, costed, reads, writes, times, line=line(node.name)))
        names.append(title(node))
        scope.append(scopes.setdefault("optimizer" if where.phase == OPTIMIZER else where.scope or "", len(scopes)))
        phase.append(where.phase)
    return Counted(
        names=tuple(executed_node.event for executed_node in ran),
        thread=np.zeros(len(ran), np.int64),
        parent=np.full(len(ran), -1, np.int64),
        op_of=np.asarray(op_of, np.int64),
        view_of=np.asarray(view, bool),
        ops=tuple(rows),
        names_of_ops=tuple(names),
        scopes=tuple(scopes) or ("",),
        scope=np.asarray(scope, np.int64),
        phase=np.asarray(phase, np.int64),
        unknown=reasons,
        addresses=addresses(allocations, rows, [ran[row.node].node.name for row in rows], buffers.lasting()),
    )


def _together(op: CountedOp, other: CountedOp) -> CountedOp:
    """Return what two nodes do whose events have one name as one op."""
    costed = replace(
        op.costed,
        cost=op.costed.cost + other.costed.cost,
        shapes=f"{op.costed.shapes} and {other.costed.shapes}",
        reads=(*op.costed.reads, *other.costed.reads),
        writes=(*op.costed.writes, *other.costed.writes),
    )
    times = op.times + other.times
    return replace(op, costed=costed, reads=(*op.reads, *other.reads), writes=(*op.writes, *other.writes), times=times)


def _as_copy(node: Node) -> Node:
    """Reading a variable that nobody else may hold copies it."""
    return replace(node, op="DeepCopy", in_types=node.outputs)


class _Executions:
    """The work of several executions; equal work is one object, as the rows of a profile expect."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, float, float | None], tuple[Costed, Costed]] = {}

    def of(self, costed: Costed, times: float, model: float | None) -> Costed:
        """`times` executions, with the model FLOPs of all of them where they are known."""
        key = (id(costed), times, model)
        if key not in self._known:
            cost = costed.cost * times
            if model is not None and cost.model_flops is not None:
                cost = msgspec.structs.replace(cost, model_flops=model)
            repeated = costed
            if cost != costed.cost:
                # Buffers keep their size: what the first execution fetched, the next one finds.
                repeated = replace(costed, cost=cost)
            self._known[key] = (costed, repeated)  # the first keeps its id from being used again
        return self._known[key][1]
