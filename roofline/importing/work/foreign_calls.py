"""Cost the calls of an imported trace that are no ops of torch's: Triton, communication, libraries, lone copies.

`costs` says which calls are ops of torch's; here are the others that launch kernels, with what is known of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core import copies
from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import OpClass
from roofline.costs import custom, kernel_names
from roofline.costs.calls import Call, describe, tensors
from roofline.costs.context import Context
from roofline.costs.counted import Costed
from roofline.costs.dtypes import DTYPES, said
from roofline.importing.work import communication, list_arguments
from roofline.importing.work.arguments import KinetoNodes
from roofline.importing.work.surroundings import Surroundings
from roofline.pytorch.aten.tables import base
from roofline.pytorch.inductor import triton_names as triton
from roofline.pytorch.inductor.triton_source import Sources
from roofline.traces import nesting
from roofline.traces.kineto.batches import Always, Batches
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KERNEL, MEMCPY, MEMSET, KinetoTrace

if TYPE_CHECKING:
    from roofline.pytorch.count import Generated


def nodes_of(nodes: KinetoNodes, links: Links) -> NDArray[np.int64]:
    """int64[device]: the node that launched each device event, itself; -1 for none of these."""
    rows = nodes.rows if nodes.rows is not None else np.full(len(nodes), -1, np.int64)
    node = np.full(len(links.parent) + 1, -1, np.int64)
    traced = rows >= 0
    node[rows[traced]] = np.flatnonzero(traced)
    return np.where(links.op >= 0, node[links.op], -1)


def kernels(
    trace: KinetoTrace,
    links: Links,
    nodes: KinetoNodes,
    batches: Batches | Always | None = None,
    sources: Sources | None = None,
) -> dict[int, Generated]:
    """The calls that launch kernels and are no ops of torch's, with what is known of their work; by node.

    Triton kernels of torch's compiler, communication, nodes of the backward pass that have a formula, and opaque calls:
    their work is unknown and their class is that of most of their kernels' time. `nodes`: from `Costs.nodes`.
    batches: of the serving engine that runs the calls, by time; None: those of this trace. sources: of Triton kernels.
    """
    at = nodes_of(nodes, links)
    unit = nesting.outermost(nodes.parent, nodes.is_op)
    device = trace.device
    launched_in = np.append(unit, -1)[at]
    launching = np.unique(np.where(launched_in >= 0, launched_in, at)[at >= 0])
    rows = np.flatnonzero((at >= 0) & (launched_in < 0))
    order = np.argsort(at[rows], kind="stable")
    owners, first = np.unique(at[rows][order], return_index=True)
    events = np.split(rows[order], first[1:]) if len(owners) else []
    forward = _forward_of(nodes, owners)
    exchanged = _exchanged(trace, nodes, at)
    around = _Around(trace, links, nodes, batches)
    alike = around.alike(owners.tolist(), events)
    calls: dict[int, Generated] = {}
    for node, mine in zip(owners.tolist(), events, strict=True):  # calls that launch and are no ops, of one step
        name = nodes.names[node]
        formula = custom.entry(name)
        if formula is not None and formula.forward:
            forward_node = forward.get(node)
            call = _recorded(nodes.call(node))
            if forward_node is not None:
                call = replace(call, inputs=(*call.inputs, *_recorded(nodes.call(forward_node)).inputs))
            calls[node] = generated(name, custom.cost(call, formula.function, formula.op_class))
        elif formula is not None and formula.context:
            calls[node] = generated(name, around.costed(node, mine, formula, node in alike))
        elif triton.is_triton(name, nodes.events.args[node]):
            calls[node] = generated(name, _by_triton(nodes, node, launching, sources))
        elif _communicates(trace, name, mine):
            top = _top(nodes, node)
            calls[top] = generated(nodes.names[top], _communication(trace, nodes, top, node, mine, exchanged.get(top)))
        elif "::" in name and not name.startswith(("torch::autograd::", "autograd::")):
            names = [trace.names[code] for code in device.name[mine].tolist()]
            work = unknown("an op of a library's own, of which the trace says no work: give it a formula")
            calls[node] = generated(name, plain_cost(nodes.call(node), work, _class(names, device.duration[mine])))
    return calls


class _Around:
    """Cost calls by formulas that ask for what is around them."""

    def __init__(self, trace: KinetoTrace, links: Links, nodes: KinetoNodes, batches: Batches | Always | None) -> None:
        self._trace, self._nodes = trace, nodes
        self._surroundings = Surroundings(trace, links, Batches(trace) if batches is None else batches)
        self._known: dict[tuple[int, Context], Costed] = {}

    def alike(self, owners: list[int], events: list[NDArray[np.int64]]) -> set[int]:
        """Return the calls that launch the same kernels as all others with their name and arguments."""
        device = self._trace.device
        launched: dict[int, set[bytes]] = {}
        for node, mine in zip(owners, events, strict=True):
            # Equal calls are one object.
            launched.setdefault(id(self._nodes.call(node)), set()).add(device.name[mine].tobytes())
        return {node for node in owners if len(launched[id(self._nodes.call(node))]) == 1}

    def costed(self, node: int, events: NDArray[np.int64], formula: custom.Formula, alike: bool) -> Costed:
        call, rows = self._nodes.call(node), self._nodes.rows
        context = Context() if rows is None else self._surroundings.of(int(rows[node]), events.tolist(), alike)
        if (id(call), context) not in self._known:
            function = partial(formula.function, context)
            self._known[id(call), context] = custom.cost(_recorded(call), function, formula.op_class)
        return self._known[id(call), context]


def generated(name: str, costed: Costed) -> Generated:
    """Make the call of a kernel that is no op of torch's: its buffers are not known."""
    from roofline.pytorch.count import Generated

    reads, writes = (-1,) * len(costed.reads), (-1,) * len(costed.writes)
    return Generated(name=name, costed=costed, reads=reads, writes=writes, scope=None, places=())


#: How many tensors a product gets that writes its result where it is told.
_WITH_RESULT = {"aten::mm": 3, "aten::bmm": 3, "aten::addmm": 4, "aten::baddbmm": 4}


def _by_triton(nodes: KinetoNodes, node: int, launching: NDArray[np.int64], sources: Sources | None) -> Costed:
    """Cost a generated kernel, by its source where that is at hand. launching: calls that launch, in order."""
    recorded = triton.event(nodes.events.args[node])
    source = sources.kernel(recorded.file) if sources is not None and recorded.file else None
    result = None
    earlier = launching[: np.searchsorted(launching, node)]
    if len(earlier) and nodes.thread[earlier[-1]] == nodes.thread[node]:
        before = nodes.call(int(earlier[-1]))
        given = list(tensors(before.inputs))
        result = given[-1] if _WITH_RESULT.get(before.name) == len(given) else None
    return triton.costed(nodes.call(node), recorded.blocks, result, source)


def _communicates(trace: KinetoTrace, name: str, rows: NDArray[np.int64]) -> bool:
    if communication.is_collective(name):
        return True
    # By the name of an op of a library only what is itself a collective's kernel, or nothing else.
    kernels = [trace.names[code] for code in trace.device.name[rows[trace.device.kind[rows] == KERNEL]].tolist()]
    return bool(kernels) and (
        communication.is_communication(name) or all(communication.is_communication(kernel) for kernel in kernels)
    )


def _top(nodes: KinetoNodes, node: int) -> int:
    """The outermost op of torch.distributed around a call: one message is one op."""
    top, row = node, int(nodes.parent[node])
    while row >= 0:
        if communication.is_collective(nodes.names[row]):
            top = row
        row = int(nodes.parent[row])
    return top


def _communication(
    trace: KinetoTrace, nodes: KinetoNodes, top: int, node: int, rows: NDArray[np.int64], exchanged: float | None
) -> Costed:
    messages = [communication.arguments(nodes.events.args[row]) for row in dict.fromkeys((node, top))]
    kernel = communication.arguments(trace.device.args[int(rows[0])])
    call, mark, around = _recorded(nodes.call(top)), _mark(nodes, top), _around(nodes, top)
    return communication.costed(call, messages, kernel, mark, around, exchanged)


def _mark(nodes: KinetoNodes, top: int) -> Call | None:
    """The mark of torch's NCCL backend inside a collective, whose tensor is the message."""
    events, row = nodes.events, top + 1
    while row < len(nodes) and events.start[row] < events.end[top]:
        if events.thread[row] == events.thread[top] and nodes.names[row] in communication.MARKS:
            return _recorded(nodes.call(row))
        row += 1
    return None


def _around(nodes: KinetoNodes, top: int) -> Call | None:
    """The nearest call around an anonymous message that is a collective by its name.

    An op of torch.distributed has the message among its own arguments, or nobody has.
    """
    if nodes.names[top] != communication.PARAMETERS:
        return None
    row = int(nodes.parent[top])
    while row >= 0 and not nodes.names[row].startswith(("torch::autograd::", "autograd::", "ProfilerStep")):
        if communication.is_communication(nodes.names[row].replace("2", "_to_")):  # All2All
            return _recorded(nodes.call(row))
        row = int(nodes.parent[row])
    return None


def _recorded(call: Call) -> Call:
    return replace(call, inputs=said(call.inputs))


def _exchanged(trace: KinetoTrace, nodes: KinetoNodes, at: NDArray[np.int64]) -> dict[int, float]:
    """Bytes of each all-reduce of gradients whose list of tensors was recorded without sizes, by node.

    Data-parallel training gathers gradients in buckets, in the order in which they come, and exchanges a bucket when
    its last gradient has come: it holds what was accumulated since the exchange before.
    """
    tops = {
        _top(nodes, node) for node in np.unique(at[at >= 0]).tolist() if communication.is_collective(nodes.names[node])
    }
    buckets = sorted(
        (top for top in tops if nodes.names[top] == "c10d::allreduce_" and _above(nodes, top, _ACCUMULATES)),
        key=lambda top: int(nodes.events.start[top]),
    )
    if not buckets:
        return {}
    came = list_arguments.gradients(trace, nodes.events)
    size = DTYPES.get(came.dtype, ("", 4))[1]
    total = np.append(0, np.cumsum(came.numel))
    until = total[np.searchsorted(came.start, nodes.events.start[buckets], "right")]
    return {top: float(size * n) for top, n in zip(buckets, np.diff(until, prepend=0).tolist(), strict=True) if n}


_ACCUMULATES = "torch::autograd::AccumulateGrad"  # and the engine's annotation around it, in which hooks run


def _above(nodes: KinetoNodes, row: int, name: str) -> bool:
    while row >= 0 and not nodes.names[row].endswith(name):
        row = int(nodes.parent[row])
    return row >= 0


def _class(names: list[str], time: NDArray[np.int64]) -> OpClass:
    """The class in which most of the kernels' time lies."""
    sums: dict[OpClass, float] = {}
    for name, duration in zip(names, time.tolist(), strict=True):
        op_class = kernel_names.classify(name)
        sums[op_class] = sums.get(op_class, 0.0) + duration
    return max(sums, key=sums.__getitem__, default="other")


def plain_cost(call: Call, cost: Cost, op_class: OpClass) -> Costed:
    """A call with a cost that no rule gave it, such as an unknown one."""
    types = [DTYPES[tensor.dtype][0] for tensor in tensors(call.inputs) if tensor.dtype in DTYPES]
    return Costed(
        cost=cost,
        kind=base(call.name).lstrip("_") or call.name,
        op_class=op_class,
        shapes=describe(call),
        dtype=next(iter(types), None),
        output=next(iter(types), None),
    )


def _forward_of(nodes: KinetoNodes, owners: NDArray[np.int64]) -> dict[int, int]:
    """The op of the forward pass that made each node with a formula for both.

    These ops have no sequence number of their own, but their nodes have: in the order of those they were made. Where
    there are more of the one than of the other nothing is paired.
    """
    wanted: dict[str, list[int]] = {}
    for node in owners.tolist():
        formula = custom.entry(nodes.names[node]) if "::" in nodes.names[node] else None
        if formula is not None and formula.forward:
            wanted.setdefault(formula.forward, []).append(node)
    pairs: dict[int, int] = {}
    for name, backward in wanted.items():
        forward = [row for row, node_name in enumerate(nodes.names) if node_name == name]
        backward.sort(key=lambda node: int(nodes.sequence[node]))
        if len(forward) == len(backward):
            pairs |= dict(zip(backward, forward, strict=True))
    return pairs


# Device events without any op


def lone(trace: KinetoTrace, row: int) -> Costed | None:
    """A copy, fill or collective that no recorded op launched, by its own arguments; None for any other kernel.

    Copies on the device read and write their bytes; those between host and device are of class transfer, and cross the
    link once.
    """
    device = trace.device
    name, kind = trace.names[device.name[row]], int(device.kind[row])
    args = communication.arguments(device.args[row])
    if kind == KERNEL:
        if not communication.is_communication(name):
            return None
        return communication.costed(Call(name, None, ()), [], args)
    size = args.get("bytes")
    if kind not in (MEMCPY, MEMSET) or type(size) is not int or not 0 <= size < 1 << 50:
        return None
    crossing = "" if kind == MEMSET else copies.crossing(name)
    cost = Cost(bytes_read=0.0 if kind == MEMSET or crossing == "in" else float(size), bytes_written=float(size))
    if crossing == "out":
        cost = msgspec.structs.replace(cost, bytes_written=0.0)
    return Costed(
        cost=cost,
        reads=((True, 0, cost.bytes_read),) if cost.bytes_read else (),
        writes=((False, 0, cost.bytes_written),) if cost.bytes_written else (),
        kind="memset" if kind == MEMSET else "memcpy",
        op_class="transfer" if crossing else "movement",
        shapes=f"{size} bytes",
        dtype=None,
        output=None,
    )
