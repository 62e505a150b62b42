"""The executor's events of a TensorFlow trace: which node each one ran, how often a step runs it, whose time it is.

The executor writes one event per executed node, named `<node>:<type>`, on the lines of its threads. Constants, reshapes
and the like run without an event. Beside a GPU the kernels carry the node's name. A node whose kernel is asynchronous
(`CropAndResize`) has two events: one that starts it, and one when it is done, often on another thread.

A node that takes less than 8,000 cycles, as the executor finds after about 90 executions, runs without an event from
then on, whatever `host_tracer_level` is (TensorFlow 2.21, `KernelStats` in core/common_runtime/executor.cc), and may
get one again. So steps that lack such a node's events do not say that it did not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roofline.tensorflow.graph.graph import Graph, Graphs, Node, Seen
from roofline.tensorflow.graph.tables import CALLS, VIEWS, base
from roofline.tensorflow.run_shapes import gets
from roofline.tensorflow.scopes import canonical
from roofline.timing import executor as executor_time
from roofline.timing.executor import Owned
from roofline.traces import nesting
from roofline.traces.xplane.reader import XTrace

#: How the executor names an event: a node's name has no colon, the type is an identifier.
_EXECUTED = re.compile(r"([A-Za-z0-9._][\w.\\/>-]*):([A-Z_]\w*)")
#: How the events of all that Python has the framework run begin.
_CALL = "EagerLocalExecute: "
#: An op run outside of any function (eagerly); what begins with an underscore is a function.
_EAGER = re.compile(rf"{_CALL}([A-Z]\w*)")
#: A function that the host calls: "__inference_step_21" is `step`; one without a name is "<lambda>".
_FUNCTION = re.compile(rf"{_CALL}__(?:inference|forward|backward)_(\S+?)(?:_\d+)+")
#: A node of which the shortest event takes less [ps] may be one without events in other steps: 8,000 cycles and more.
_CHEAP = 10_000_000
#: The part of a name that says which turn of which loop or which branch a node is in: all of those run alike.
_PART = re.compile(r".*/(?:body|cond|then|else|branch\d*)/_\d+/")
#: The event by which an asynchronous node starts, and the one when it is done.
_STARTS, _DONE = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"
#: What makes the input data, and what hands tensors in and out of a function, is the host's time.
_DATA = re.compile(r"Dataset|Iterator|^_send_|^_recv_")


@dataclass(frozen=True, slots=True)
class Ran:
    """A node that steps ran. function: its number; event: its name in the trace; times: per step.

    Where nodes of several functions ran under one name, there is one of each.
    """

    event: str
    function: int
    node: Node
    times: float


def executed(traces: Sequence[XTrace], prefix: str, graphs: Graphs) -> list[Ran]:
    """The nodes that the marked steps ran, in the order in which they first began.

    A name that several functions have is taken for the node of the type that the event says, and of those for that of
    the function most of whose names ran.
    """
    counts: dict[str, list[int]] = {}
    shortest: dict[str, int] = {}
    steps = 0
    for trace in traces:
        name_of, ends = _nodes(trace)
        host = np.flatnonzero((name_of >= 0) & ~_on_device(trace))
        host = host[~holds_instructions(trace, host)]
        for low, high in executor_time.windows(trace, prefix):
            steps += 1
            inside = host[(trace.start[host] >= low) & (trace.start[host] < high)]
            codes, number = np.unique(name_of[inside], return_counts=True)
            start = np.full(len(codes), high, np.int64)
            least = np.full(len(codes), np.iinfo(np.int64).max)
            at_code = np.searchsorted(codes, name_of[inside])
            np.minimum.at(start, at_code, trace.start[inside])
            np.minimum.at(least, at_code, ends[inside] - trace.start[inside])
            for at in np.argsort(start, kind="stable").tolist():
                name = trace.names[codes[at]]
                counts.setdefault(name, []).append(int(number[at]))
                shortest[name] = min(shortest.get(name, int(least[at])), int(least[at]))
    resolved = _resolved(list(counts), graphs)
    turns = _turns(counts)
    times = {
        name: turns.get(_part(name), max(executions)) if shortest[name] < _CHEAP else sum(executions) / steps
        for name, executions in counts.items()
    }
    functions: dict[str | None, set[int]] = {}
    for name, runs in resolved.items():
        functions.setdefault(_part(name), set()).update(number for number, _, _ in runs)
    for name in times.keys() & graphs.seen.keys():
        if _part(name) in turns and len(functions.get(_part(name), ())) > 1:  # of several loops, whose turns add up
            times[name] = sum(graphs.seen[name].values())
    ran = [
        Ran(name, number, node, times[name] if seen is None else float(seen))
        for name in counts
        for number, node, seen in resolved.get(name, ())
    ]
    written = {name.rpartition(":")[0] for trace in traces for name in trace.names}
    return [*ran, *_unwritten(ran, written, turns, graphs)]


def _nodes(trace: XTrace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each event the number of its node's name, or -1, and when that node is done [ps]."""
    executor = np.asarray([_EXECUTED.fullmatch(name) is not None for name in trace.names] + [False], bool)
    name = np.where(executor[trace.name], trace.name, -1).astype(np.int64)
    end = trace.end.copy()
    begins, ends = (trace.names.index(mark) if mark in trace.names else -2 for mark in (_STARTS, _DONE))
    starts = np.flatnonzero((trace.name == begins) & executor[trace.scope])
    names = (trace.names[code] for code in trace.scope[starts].tolist())
    starts = starts[np.asarray([_does_work(node_name) for node_name in names], bool)]
    name[starts] = trace.scope[starts]
    ended = {int(trace.consumes[row]): int(trace.end[row]) for row in np.flatnonzero(trace.name == ends).tolist()}
    for row in starts.tolist():
        end[row] = max(int(end[row]), ended.get(int(trace.produces[row]), 0))
    return name, end


def _unwritten(ran: Sequence[Ran], written: Set[str], turns: Mapping[str | None, int], graphs: Graphs) -> Iterator[Ran]:
    """Nodes in the bodies of loops that ran, and of which no trace has an event: all of a body's run in each turn."""
    bodies = {
        (executed_node.function, part)
        for executed_node in ran
        if "/body/" in (part := _part(executed_node.event) or "")
    }
    for function in dict.fromkeys(function for function, _ in bodies):
        for node in graphs.functions[function].after:
            body = _part(node.name)
            if (function, body) in bodies and node.name not in written:
                yield Ran(f"{node.name}:{node.op}", function, node, turns[body])


def _part(name: str) -> str | None:
    match = _PART.match(name)
    return None if match is None else match[0]


def _turns(counts: Mapping[str, Sequence[int]]) -> dict[str | None, int]:
    """Count how often a step runs each body of a loop and each branch: as often as any of its nodes was seen to."""
    turns: dict[str | None, int] = {}
    for name, executions in counts.items():
        if (part := _part(name)) is not None:
            turns[part] = max(turns.get(part, 0), *executions)
    return turns


def runs_nodes(trace: XTrace, prefix: str) -> bool:
    """Tell whether a marked step runs nodes that do work, outside of what XLA compiled."""
    work = np.asarray([_does_work(name) for name in trace.names] + [False], bool)
    rows = np.flatnonzero(work[trace.name] | work[trace.scope])
    rows = rows[(trace.hlo_op[rows] < 0) & ~holds_instructions(trace, rows)]
    return any(
        bool(((trace.start[rows] >= low) & (trace.start[rows] < high)).any())
        for low, high in executor_time.windows(trace, prefix)
    )


def not_known(traces: Sequence[XTrace], prefix: str, ran: Sequence[Ran]) -> list[str]:
    """List the names of nodes that did work in a marked step and that are none of `ran`."""
    read_events = {executed_node.event for executed_node in ran}
    unread: dict[str, None] = {}
    for trace in traces:
        name_of, _ = _nodes(trace)
        rows = np.flatnonzero((name_of >= 0) & (trace.hlo_op < 0) & ~_on_device(trace))
        rows = rows[~holds_instructions(trace, rows)]
        for low, high in executor_time.windows(trace, prefix):
            inside = rows[(trace.start[rows] >= low) & (trace.start[rows] < high)]
            names = (trace.names[code] for code in np.unique(name_of[inside]).tolist())
            unread |= {name: None for name in names if name not in read_events and _does_work(name)}
    return list(unread)


def _does_work(name: str) -> bool:
    match = _EXECUTED.fullmatch(name)
    return match is not None and not any((_DATA.search(name), base(match[2]) in VIEWS, base(match[2]) in CALLS))


def called(traces: Sequence[XTrace], prefix: str) -> tuple[list[str], list[str]]:
    """The functions that the host calls in marked steps, as the user named them, and the ops that it runs eagerly."""
    functions: dict[str, None] = {}
    ops: dict[str, None] = {}
    for trace in traces:
        for low, high in executor_time.windows(trace, prefix):
            for code in np.unique(trace.name[(trace.start >= low) & (trace.start < high)]).tolist():
                function, op = _FUNCTION.fullmatch(trace.names[code]), _EAGER.fullmatch(trace.names[code])
                if function is not None:
                    functions[function[1]] = None
                elif op is not None and op[1] not in VIEWS and not _DATA.search(op[1]):
                    ops[op[1]] = None
    return list(functions), list(ops)


def calls(traces: Sequence[XTrace], prefix: str) -> float:
    """Count the functions that the host calls in a marked step: the mean over them."""
    number = []
    for trace in traces:
        codes = [code for code, name in enumerate(trace.names) if _FUNCTION.fullmatch(name)]
        starts = np.sort(trace.start[np.isin(trace.name, codes)])
        number += [np.diff(np.searchsorted(starts, window)).item() for window in executor_time.windows(trace, prefix)]
    return float(np.mean(number)) if number else 0.0


def every_node(graphs: Graphs) -> list[Ran]:
    """All nodes once, where no run tells which were executed: loops count one trip, and every branch is taken."""
    return [
        Ran(f"{node.name}:{node.op}", number, node, 1.0)
        for number, function in enumerate(graphs.functions)
        for node in function.after
    ]


#: The number of a function, a node of it, and how often that ran, where it was counted apart from others of its name.
_Run = tuple[int, Node, int | None]


def _resolved(names: Sequence[str], graphs: Graphs) -> dict[str, list[_Run]]:
    candidates: dict[str, list[tuple[int, Node]]] = {}
    hits = [0] * len(graphs.functions)
    # Where only the graph before grappler is known, lowering numbers the loops of what runs.
    numbered = [
        {canonical(node.name): node for node in function.after} if function.after is function.before else {}
        for function in graphs.functions
    ]
    for name in names:
        node_name, _, op = name.rpartition(":")
        many = []
        for number, function in enumerate(graphs.functions):
            node = function.after.by_name.get(node_name) or numbered[number].get(canonical(node_name))
            if node is not None and numbered[number] and base(op) == "MatMul" != base(node.op):
                node = _fused(node, op, function.after)
            if node is not None and base(node.op) == base(op):
                many.append((number, node))
        if many:
            candidates[name] = many
            for number, _ in many:
                hits[number] += 1
    called = {number for number, function in enumerate(graphs.functions) if numbered[number]}
    resolved: dict[str, list[_Run]] = {}
    for name, many in candidates.items():
        best = max(many, key=lambda candidate: hits[candidate[0]])
        if seen := _seen(name, many, graphs.seen):
            resolved[name] = seen
        elif not _ambiguous(best, many, hits, called):
            resolved[name] = [(*best, None)]
    return resolved


def _seen(name: str, candidates: Sequence[tuple[int, Node]], seen: Seen) -> list[_Run]:
    """Divide what was seen to run under a name among unlike nodes that have it; empty where nothing tells, or not all.

    Each gets what has the shapes of its inputs; where a node of known shapes and one of any size do, the former.
    """
    kinds = {(node.in_types, node.outputs): (number, node) for number, node in reversed(candidates)}
    times = dict.fromkeys(kinds, 0)
    for shapes, executions in seen.get(name, {}).items():
        fitting = [kind for kind, (_, node) in kinds.items() if gets(node, shapes)]
        known = [kind for kind in fitting if all(tensor.elements is not None for tensor in kind[0])]
        fitting = known or fitting
        if len(fitting) != 1:
            return []
        times[fitting[0]] += executions
    return [(*kinds[kind], executions) for kind, executions in times.items() if executions] if len(kinds) > 1 else []


def _fused(node: Node, op: str, graph: Graph) -> Node | None:
    """Return the node that grappler makes of a bias and of the product that it is added to; None of any other node."""
    product = graph.by_name.get(node.inputs[0][0]) if node.inputs else None
    if node.op != "BiasAdd" or product is None or product.op != "MatMul":
        return None
    return replace(
        node,
        name=product.name,  # what is asked for of the product is found by it
        op=op,
        inputs=(*product.inputs, *node.inputs[1:]),
        in_types=(*product.in_types, *node.in_types[1:]),
        attrs={**product.attrs, "fused_ops": ("BiasAdd",)},
    )


def _ambiguous(
    chosen: tuple[int, Node], candidates: Sequence[tuple[int, Node]], hits: Sequence[int], called: Set[int]
) -> bool:
    """Tell whether another function that ran as much of its own has a node of this name with other shapes.

    called: functions that run whenever the one that calls them does.

    One tf.function called with two shapes is two functions of equal names: an event does not say which one ran, and
    what a step was seen to run (`_seen`) may not tell either.
    """
    number, node = chosen
    return any(
        (hits[rival] == hits[number] or {number, rival} <= called)
        and (rival_node.in_types, rival_node.outputs) != (node.in_types, node.outputs)
        for rival, rival_node in candidates
        if rival != number
    )


def owned(trace: XTrace, ops: Mapping[str, int], node_of: Mapping[str, Node]) -> Owned:
    """Assign each event to its op. ops: event name -> number of the op; node_of: event name -> its node.

    What lies in the event of an op is part of it, and an event of a call that holds those of its function is none.
    Events that hold HLO instructions belong to XLA's reader. An op that was run eagerly has no node: it is lost.
    """
    size = len(trace.start)
    op, lost = np.full(size, -1, np.int64), np.zeros(size, bool)
    device = _on_device(trace)
    if device.any():
        rows, code = np.flatnonzero(device), trace.scope[device]
        by_node = {name.rpartition(":")[0]: number for name, number in ops.items()}
        numbers = np.asarray([ops.get(name, by_node.get(name, -1)) for name in trace.names] + [-1], np.int64)
        op[rows] = numbers[code]
        lost[rows] = (op[rows] < 0) & (trace.hlo_op[rows] < 0)
        return Owned(op=op, start=trace.start, end=trace.end, lost=lost, device=True)
    number, is_lost, is_call = (np.asarray(column) for column in zip(*_by_name(trace.names, ops, node_of), strict=True))
    node, end = _nodes(trace)
    name = np.where(node >= 0, node, trace.name)
    rows = np.flatnonzero((number[name] >= 0) | is_lost[name])
    rows = rows[~holds_instructions(trace, rows)]
    op[rows], lost[rows] = number[name[rows]], is_lost[name[rows]]
    _once(trace, rows, is_call, op, lost)
    return Owned(op=op, start=trace.start, end=end, lost=lost)


def _by_name(
    names: Sequence[str], ops: Mapping[str, int], node_of: Mapping[str, Node]
) -> Iterator[tuple[int, bool, bool]]:
    """Yield for each name: number of the op or -1, whether it is work without an op, whether its inside counts."""
    for name in names:
        match = _EXECUTED.fullmatch(name)
        eager = _EAGER.fullmatch(name)
        if match is not None:
            op, has_node = match[2], name in node_of
            work = not has_node and base(op) not in VIEWS and not _DATA.search(op) and not _DATA.search(name)
            yield ops.get(name, -1), work, base(op) in CALLS
        elif eager is not None:
            yield -1, eager[1] not in VIEWS and not _DATA.search(eager[1]), True
        else:
            yield -1, False, False
    yield -1, False, False


def _once(
    trace: XTrace, rows: NDArray[np.int64], is_call: NDArray[np.bool_], op: NDArray[np.int64], lost: NDArray[np.bool_]
) -> None:
    """Take each instant of a thread once: of nested events the outer one, but a call's inner ones."""
    line, start, end = trace.line[rows].astype(np.int64), trace.start[rows], trace.end[rows]
    parent = nesting.parents(line, start, end, np.arange(len(rows)))
    call = is_call[trace.name[rows]]
    opened = call & (nesting.children_count(parent) > 0)
    outer = nesting.outermost(parent, ~opened)
    gone = rows[opened | (outer != np.arange(len(rows)))]
    op[gone], lost[gone] = -1, False


def holds_instructions(trace: XTrace, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[len(rows)]: whether an event of XLA's executor began inside each of these events, on the same line."""
    inner = np.flatnonzero(trace.hlo_op >= 0)
    result = np.zeros(len(rows), bool)
    for line in np.unique(trace.line[inner]).tolist():
        starts = np.sort(trace.start[inner[trace.line[inner] == line]])
        mine = np.flatnonzero(trace.line[rows] == line)
        low, high = trace.start[rows[mine]], trace.end[rows[mine]]
        result[mine] = np.searchsorted(starts, high) > np.searchsorted(starts, low)
    return result


def _on_device(trace: XTrace) -> NDArray[np.bool_]:
    """bool[n]: kernels, that is the events of device planes."""
    device = np.asarray([line.plane.startswith("/device:") for line in trace.lines] + [False], bool)
    return device[trace.line] if len(trace.line) else np.zeros(0, bool)
