"""Counts a step: from the nodes of an execution trace to its ops, with work, scope and phase.

The counted op is the topmost call that is not a wrapper (no CompositeImplicitAutograd kernel): what autograd sees and
what the profiler times as one event. Calls inside it are part of it, and say its work where it has no rule (`opening`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.cost import by_index
from roofline.core.scopes import LOADER
from roofline.core.vocabulary import PRODUCTS
from roofline.costs.calls import Call, Tensor, tensors
from roofline.costs.counted import Costed, Counted, CountedOp, Interner
from roofline.pytorch import einsum, unfused_attention
from roofline.pytorch.aten.contractions import unread_gradients
from roofline.pytorch.aten.tables import ALLOCATIONS, DISPATCH_MODE, base
from roofline.pytorch.nodes import Costing, Nodes
from roofline.pytorch.one_hot import OneHot
from roofline.pytorch.opening import opened, stand_for
from roofline.pytorch.padded_products import PaddedProducts
from roofline.pytorch.uses import Uses, storages_of
from roofline.pytorch.zero_padding import ZeroPadding
from roofline.traces import nesting

#: Annotations that only the counting run makes: the layers, and the phases torch does not mark by itself.
SCOPE = "roofline:scope:"
PHASE = "roofline:phase:"
#: Another that it makes: around what a checkpoint repeats of the forward pass.
AGAIN = "roofline:again"
#: One around what makes a tensor of the number 0 in Python, whose contents no recorder sees.
ZERO = "roofline:zero"
#: And one around calls of its own on the tensors that the step returns, which are no ops of the step.
RETURNED = "roofline:returned"
#: Or that `torch.autograd.grad` hands out, read or not.
HANDED_OUT = "roofline:handed_out"

#: One at the begin of each line of the user's program; "" behind it: from there on none of them runs.
LINE = "roofline:line:"

_FORWARD, _BACKWARD, _OPTIMIZER = range(3)
#: The engine's annotation around one backward node; the node itself lies in it and has the sequence number.
EVALUATE = "autograd::engine::evaluate_function"
#: What brings a result to the host: `.item()`, `float()`, `bool()`, printing.
HOST_READ = "aten::_local_scalar_dense"
#: PyTorch's annotation around reading the next batch, which its loaders do in the step where they have no workers.
_LOADS = "enumerate(DataLoader)#"
#: The node of a reentrant checkpoint.
_CHECKPOINT = "CheckpointFunctionBackward"


@dataclass(frozen=True, slots=True)
class Generated:
    """Holds a call of which the recorder knows the name only, as a compiler's kernel: its work was noted elsewhere.

    name: what it goes by in the profile. reads, writes: storages. scope: None: that of the calls around it. places: the
    scope of each of its parts.
    """

    name: str
    costed: Costed
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scope: str | None
    places: tuple[str, ...]


def count(
    nodes: Nodes,
    engine: Costing,
    generated: Mapping[int, Generated] = MappingProxyType({}),
    scope_of: Mapping[int, str] = MappingProxyType({}),
    addresses: Mapping[int, int] = MappingProxyType({}),
) -> Counted:
    """Count one recorded step.

    generated: calls whose work is given; scope_of: scopes known better than by marks; addresses: of storages [byte].
    """
    returned, handed_out = (
        nesting.nearest(nodes.parent, np.asarray([name == mark for name in nodes.names], bool)) >= 0
        for mark in (RETURNED, HANDED_OUT)
    )
    is_op = nodes.is_op.copy()
    is_op[list(generated)] = True
    is_repeated = _recomputed(nodes)
    is_op[_answered_from_checkpoint(nodes, is_repeated)] = False
    is_op[returned | handed_out] = False
    phase = _phases(nodes)
    scope_names, scope = _scopes(nodes, phase, generated, scope_of)
    noted_ops = {node: _noted(node, kernel, scope_names, int(phase[node])) for node, kernel in generated.items()}
    where = np.stack([np.where(scope >= 0, scope, _name(scope_names, "")), phase], axis=1)
    uses = Uses(nodes, is_op, returned, engine)
    work = _Work(nodes, engine, uses, is_op, where, is_repeated, noted_ops)
    ops, op_of, view_of = _ops(nodes.parent, is_op, work)

    rows = np.asarray([op.node for op in ops], np.int64)
    called = tuple(generated[op.node].name if op.node in generated else nodes.names[op.node] for op in ops)
    of_ops = _with_updates(ops, called, phase[rows])
    for row in np.flatnonzero(of_ops != phase[rows]).tolist():  # what a fused update is made of is no forward pass
        ops[row] = replace(ops[row], places=tuple((at, _OPTIMIZER) for at, _ in ops[row].places))
    op_scope = _scopes_by_data(ops, scope[rows], of_ops, scope_names)
    lines = _lines(nodes, phase)
    if lines is not None:
        ops = [replace(op, line=lines[op.node]) for op in ops]
    ours = returned | handed_out | np.asarray([name.startswith("roofline:") for name in nodes.names], bool)
    shown = np.flatnonzero(~ours)
    return Counted(
        names=tuple(nodes.names[i] for i in shown.tolist()),
        thread=nodes.thread[shown],
        parent=_nearest_kept(nodes.parent, ours)[shown],
        op_of=op_of[shown],
        view_of=view_of[shown],
        ops=tuple(ops),
        names_of_ops=called,
        scopes=tuple(scope_names),
        scope=op_scope,
        phase=of_ops,
        unknown={
            name: op.costed.cost.note
            for name, op in zip(called, ops, strict=True)
            if op.costed.cost.quality == "unknown"
        },
        host_reads=_host_reads(nodes, op_of, len(ops)),
        addresses=addresses,
    )


def _noted(node: int, kernel: Generated, scope_names: list[str], phase: int) -> CountedOp:
    places = tuple((_name(scope_names, path), phase) for path in kernel.places)
    return CountedOp(node, kernel.costed, kernel.reads, kernel.writes, places=places)


def _ops(
    parent: NDArray[np.int64], is_op: NDArray[np.bool_], work: _Work
) -> tuple[list[CountedOp], NDArray[np.int64], NDArray[np.bool_]]:
    """Count the outermost ops, or those inside that stand for them.

    Returns the ops that do work, and for each call the number of the op that it is or lies in, or -1, and whether it is
    or lies in one that does no work.
    """
    ops: list[CountedOp] = []
    number, is_view, counts = np.full(len(parent), -1, np.int64), np.zeros(len(parent), bool), is_op.copy()
    for root in np.flatnonzero(nesting.outermost(parent, is_op) == np.arange(len(parent))).tolist():
        opened_calls, made_of, without_work = work.ops(root)
        counts[opened_calls] = False
        is_view[without_work] = True
        for op in made_of:
            number[op.node] = len(ops)
            ops.append(op)
    unit = nesting.outermost(parent, counts)
    return ops, np.where(unit >= 0, number[unit], -1), np.where(unit >= 0, is_view[unit], False)


#: Counts a call, and yields the counting of each call inside it, whose op it is sent.
_Counting: TypeAlias = "Generator[_Counting, CountedOp | None, CountedOp | None]"


def _result(counting: _Counting) -> CountedOp | None:
    """Run a counting and those inside it: calls may lie in each other deeper than Python calls functions."""
    running, op = [counting], None
    while running:
        try:
            running.append(running[-1].send(op))
            op = None
        except StopIteration as ended:
            running.pop()
            op = ended.value
    return op


class _Work:
    """Counts calls as the program asks for them, in their order: earlier calls tell what later ones are asked for."""

    def __init__(
        self,
        nodes: Nodes,
        engine: Costing,
        uses: Uses,
        is_op: NDArray[np.bool_],
        place: NDArray[np.int64],
        is_repeated: NDArray[np.bool_],
        noted_ops: Mapping[int, CountedOp],
    ) -> None:
        """place: scope and phase of each call, shape (calls, 2). is_repeated: it repeats what was asked for before.

        noted_ops: ops whose work is given.
        """
        self._noted_ops = noted_ops
        self._nodes, self._engine, self._place, self._is_repeated = nodes, engine, place, is_repeated
        self._same, self._padded, self._one_hot = Interner(), ZeroPadding(), OneHot()
        zeros = np.asarray([name == ZERO for name in nodes.names], bool)
        self._makes_zero = nesting.nearest(nodes.parent, zeros) >= 0
        self._uses = uses
        self._products = PaddedProducts(nodes, nodes.names, self._uses)
        self._multiplied = einsum.multiplications(nodes)
        self._not_fused = unfused_attention.notes(nodes.names, nodes.parent, nodes.call)
        around = np.append(nesting.nearest(nodes.parent, is_op), -1)[nodes.parent]
        self._order = np.flatnonzero(is_op)[np.argsort(around[is_op], kind="stable")]
        self._around = around[self._order]
        self._inside: dict[int, list[tuple[int, CountedOp | None]]] = {}

    def ops(self, node: int) -> tuple[list[int], list[CountedOp], list[int]]:
        """Count a call: calls that others inside stand for, those that are counted, and those that do no work.

        Beside a GPU, where each kernel tells which call it is of, the calls inside an op without a rule are counted
        each by itself, if they do all that it does.
        """
        opened_calls: list[int] = []
        counted: list[CountedOp] = []
        without_work: list[int] = []
        waiting = [(node, _result(self._op(node)))]
        while waiting:
            node, op = waiting.pop()
            if op is None:
                without_work.append(node)
            elif node in self._inside:
                opened_calls.append(node)
                waiting += reversed(self._inside.pop(node))
            else:
                counted.append(op)
        return opened_calls, counted, without_work

    def _op(self, node: int) -> _Counting:
        """Count a call, and where it has no rule the calls inside it; None where it does no work."""
        if node in self._noted_ops:
            return self._noted_ops[node]
        call = self._nodes.call(node)
        costed = self._engine.cost(call)
        if self._makes_zero[node]:
            self._one_hot.fill_with_zeros(call)
        if costed.view:
            return None
        if costed.cost.quality == "unknown" and costed.cost.bytes is None:
            op = yield self._opened(node, call, costed)
            if op is not None:
                return op
        if node in self._multiplied:
            costed = self._product(node, costed)
        elif costed.cost.model_flops:
            costed = self._asked(node, call, costed)
        arguments, results = list(tensors(call.inputs)), list(tensors(call.outputs or ()))
        reads, writes = (storages_of(accesses, arguments, results) for accesses in (costed.reads, costed.writes))
        self._padded.follow(call, writes)
        self._one_hot.follow(call, writes)
        return CountedOp(node, costed, reads, writes)

    def _opened(self, node: int, call: Call, costed: Costed) -> _Counting:
        first, last = np.searchsorted(self._around, (node, node + 1))
        calls: list[tuple[int, CountedOp | None]] = []
        for child in self._order[first:last].tolist():
            calls.append((child, (yield self._op(child))))
        if any(tensor.device.startswith("cuda") for tensor in tensors((call.inputs, call.outputs or ()))):
            inside = [self._with_results(op) for _, op in calls if op is not None]
            if inside and stand_for(call, costed, inside, self._allocated([child for child, _ in calls])):
                self._inside[node] = calls
                return CountedOp(node, costed, (), ())
        return (yield self._joined(node, costed, calls))

    def _joined(self, node: int, costed: Costed, calls: Sequence[tuple[int, CountedOp | None]]) -> _Counting:
        """Count an op with the work of all calls inside it, also of those that would have been counted apart."""
        inside: list[CountedOp] = []
        for child, op in calls:
            if op is not None and child in self._inside:
                op = (yield self._joined(child, op.costed, self._inside.pop(child))) or op
            inside += [] if op is None else [op]
        op = opened(self._nodes.call(node), costed, inside, self._allocated([child for child, _ in calls]))
        if op is None:
            return None
        places = [place for child in inside for place in self._places(child)]
        return replace(
            op, node=node, costed=self._same(op.costed), places=tuple(places) if len(set(places)) > 1 else ()
        )

    def _with_results(self, op: CountedOp) -> CountedOp:
        """Let an op of unknown work write its results."""
        if op.costed.cost.quality != "unknown":
            return op
        return replace(op, writes=tuple(tensor.storage for tensor in tensors(self._nodes.call(op.node).outputs or ())))

    def _allocated(self, calls: Sequence[int]) -> set[int]:
        """Return the storages that calls ask for and do not write."""
        asking = (self._nodes.call(node) for node in calls if base(self._nodes.names[node]) in ALLOCATIONS)
        return {tensor.storage for call in asking for tensor in tensors(call.outputs or ())}

    def _places(self, op: CountedOp) -> Sequence[tuple[int, int]]:
        """List scope and phase of an op, once for each part of it."""
        scope, phase = self._place[op.node].tolist()
        return op.places or ((scope, phase),) * max(1, len(op.costed.parts))

    def _product(self, node: int, costed: Costed) -> Costed:
        """Cost a multiplication that stands for a product: what it executes is no matrix work."""
        asked = 0.0 if self._is_repeated[node] else self._multiplied[node]
        cost = msgspec.structs.replace(costed.cost, model_flops=asked)
        return self._same(replace(costed, cost=cost, op_class="contraction"))

    def _asked(self, node: int, call: Call, costed: Costed) -> Costed:
        """Give a product the FLOPs that the program asks for in it."""
        if self._one_hot.picks(call):
            return self._same(replace(costed, cost=by_index(costed.cost)))
        # The forward pass asked once for what is done again.
        asked: float | None = 0.0
        if not self._is_repeated[node]:
            asked = self._padded.flops(node, call, self._uses)
            asked = self._products.flops(node, call) if asked is None else asked
            unread = unread_gradients(call, lambda result: self._uses.is_read(node, result))
            asked = (costed.cost.model_flops or 0.0) - unread if unread else asked
        if asked is not None:
            costed = self._same(replace(costed, cost=msgspec.structs.replace(costed.cost, model_flops=asked)))
        if node in self._not_fused and costed.op_class in PRODUCTS - {"attention"}:
            note = "; ".join(filter(None, (costed.cost.note, self._not_fused[node])))
            costed = self._same(replace(costed, cost=msgspec.structs.replace(costed.cost, note=note)))
        return costed


def reads_of_host(counted: Counted) -> int:
    """Count the results that the host reads in a step, without those that an op or a loader reads for itself."""
    loads = _loading(counted.names, counted.parent).tolist()
    return sum(
        name == HOST_READ and not loading and (op < 0 or counted.names_of_ops[op] == HOST_READ)
        for name, op, loading in zip(counted.names, counted.op_of.tolist(), loads, strict=True)
    )


def _loading(names: Sequence[str], parent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the calls that read the next batch."""
    return nesting.nearest(parent, np.asarray([name.startswith(_LOADS) for name in names], bool)) >= 0


def _host_reads(nodes: Nodes, op_of: NDArray[np.int64], ops: int) -> NDArray[np.int64]:
    """Count the results that the host reads before each op. op_of: the op that a call is or lies in, or -1.

    On a device with memory of its own a read is an op itself, which is not counted here, and an op may read for itself.
    So may a loader of batches, which is input.
    """
    read = np.asarray([name == HOST_READ for name in nodes.names], bool)
    reads = np.flatnonzero(read & (op_of < 0) & ~_loading(nodes.names, nodes.parent))
    counted = np.flatnonzero(op_of >= 0)
    following = np.searchsorted(counted, reads)
    has_op = following < len(counted)
    return np.bincount(op_of[counted[following[has_op]]], minlength=ops)


def _recomputed(nodes: Nodes) -> NDArray[np.bool_]:
    """Mark the calls that repeat the forward pass within the backward one (activation checkpointing).

    Reentrant checkpoints have a node of their own, which runs that part again and then goes back through it. What the
    others repeat runs inside of the node that first needs a kept tensor, and makes nodes anew: autograd numbers these
    calls, and does not number what a node computes itself. Where it numbers that too (`create_graph`), what is repeated
    lies in a mark of ours, in a function of one's own whose node starts the engine anew, or in a module that is called
    inside of a node. What only differentiates a gradient again lies in none of these. A node of one's own may also ask
    for new work with gradients: nothing outside of the engine did that before.
    """
    marked = nesting.nearest(nodes.parent, np.asarray([name == AGAIN for name in nodes.names], bool)) >= 0
    evaluate, is_node = _engine_nodes(nodes)
    checkpoint = np.asarray([name.removeprefix(f"{EVALUATE}: ").startswith(_CHECKPOINT) for name in nodes.names], bool)
    innermost = nesting.nearest(nodes.parent, checkpoint | evaluate)
    in_checkpoint = np.append(checkpoint, False)[innermost]
    engine = nesting.nearest(nodes.parent, evaluate)
    numbered = (nodes.sequence >= 0) & ~is_node & (engine >= 0)
    in_numbered = np.append(numbered, False)[nesting.nearest(nodes.parent, numbered | evaluate)]
    scope = nesting.nearest(nodes.parent, np.asarray([name.startswith(SCOPE) for name in nodes.names], bool))
    depth = np.append(nesting.depths(nodes.parent), -1)
    # What starts the engine is not a node of the engine's own: the nearest annotation around the inner one is none.
    starts = np.append(engine, -1)[nodes.parent[evaluate]]
    nested = np.append(np.isin(np.arange(len(nodes)), starts), False)[engine]
    inside = (depth[scope] > depth[engine]) | nested | _without_graph(nodes, is_node, numbered, engine)[engine]
    certain = marked | in_checkpoint
    likely = in_numbered & inside & ~certain
    likely[_asked_first(nodes, likely & nodes.is_op, engine < 0)] = False
    is_repeated: NDArray[np.bool_] = certain | likely
    return is_repeated


def _asked_first(nodes: Nodes, of: NDArray[np.bool_], before: NDArray[np.bool_]) -> list[int]:
    """List the calls of one mask that none of another has the name and arguments of, wherever these lie in memory."""

    def signature(value: object) -> object:
        if isinstance(value, Tensor):
            return value.shape, value.dtype
        return tuple(map(signature, value)) if isinstance(value, tuple) else value

    calls = np.flatnonzero(of).tolist()
    names = {nodes.names[index] for index in calls}
    rows = [index for index in np.flatnonzero(nodes.is_op & before).tolist() if nodes.names[index] in names]
    asked = {(nodes.names[index], signature(nodes.call(index).inputs)) for index in rows}
    return [index for index in calls if (nodes.names[index], signature(nodes.call(index).inputs)) not in asked]


def _engine_nodes(nodes: Nodes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark the engine's annotations, and those together with the nodes of autograd that lie right in them."""
    evaluate = np.asarray([name.startswith(EVALUATE) for name in nodes.names], bool)
    is_node = evaluate.copy()
    inside = np.flatnonzero(np.append(evaluate, False)[nodes.parent])
    for index, around in zip(inside.tolist(), nodes.parent[inside].tolist(), strict=True):
        is_node[index] |= nodes.names[around] == f"{EVALUATE}: {nodes.names[index]}"
    return evaluate, is_node


def _without_graph(
    nodes: Nodes, is_node: NDArray[np.bool_], numbered: NDArray[np.bool_], engine: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Mark the engine's annotations whose node makes no graph: the last call that it makes itself has no number.

    engine: the annotation that each call is in. A node unpacks what was kept for it, which may repeat a part of the
    forward pass, before it computes.
    """
    own = np.append(is_node, False)[nodes.parent] & ~is_node
    own &= np.asarray([not name.startswith("roofline:") for name in nodes.names], bool)
    calls = np.flatnonzero(own)
    without = np.zeros(len(nodes), bool)
    without[engine[nodes.parent[calls]]] = ~numbered[calls]  # in order: the last one of each stands
    return without


def _answered_from_checkpoint(nodes: Nodes, is_repeated: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List the calls of a repeated part whose results the checkpoint kept: nothing runs there.

    A selective checkpoint answers them in a dispatch mode, which calls the op itself for all others.
    """
    modes = np.asarray([name == DISPATCH_MODE for name in nodes.names], bool)
    calling = nesting.nearest(nodes.parent, modes)[nodes.is_op]
    answered = np.setdiff1d(np.flatnonzero(modes & is_repeated), calling)
    called = nodes.parent[answered]
    answered_ops: NDArray[np.int64] = called[(called >= 0) & nodes.is_op[called]]
    return answered_ops


def _inherit(parent: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each node its own value, else that of the nearest ancestor that has one; -1 for none."""
    source = nesting.nearest(parent, value >= 0)
    return np.where(source >= 0, value[source], -1)


def _scopes(
    nodes: Nodes, phase: NDArray[np.int64], generated: Mapping[int, Generated], scope_of: Mapping[int, str]
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of scopes, and of each call the number of its own: marked, its forward op's, or given; or -1."""
    names, scope = _marked_scopes(nodes)
    scope = _backward_scopes(nodes, phase, scope)
    noted = {node: kernel.scope for node, kernel in generated.items() if kernel.scope is not None}
    for node, path in {**scope_of, **noted}.items():
        scope[node] = _name(names, path)
    return names, scope


def _marked_scopes(nodes: Nodes) -> tuple[list[str], NDArray[np.int64]]:
    names: dict[str, int] = {"": 0}
    own_scope = np.full(len(nodes), -1, np.int64)
    for index, name in enumerate(nodes.names):
        if name.startswith(SCOPE):
            own_scope[index] = names.setdefault(name.removeprefix(SCOPE), len(names))
        elif name.startswith(_LOADS):
            own_scope[index] = names.setdefault(LOADER, len(names))
    return list(names), _inherit(nodes.parent, own_scope)


def _phases(nodes: Nodes) -> NDArray[np.int64]:
    own_phase = np.full(len(nodes), -1, np.int64)
    for index, name in enumerate(nodes.names):
        if name.startswith((PHASE + "backward", EVALUATE)):
            own_phase[index] = _BACKWARD
        elif name.startswith(("Optimizer.", PHASE + "optimizer")) or name == SCOPE + "optimizer":
            own_phase[index] = _OPTIMIZER
    inherited = _inherit(nodes.parent, own_phase)
    phase = np.where(inherited >= 0, inherited, _FORWARD)
    # An exception within the backward pass (checkpointing ends its repetition with one) costs calls their parents.
    marks = np.asarray([name.startswith(PHASE + "backward") for name in nodes.names], bool)
    call = nesting.nearest(nodes.parent, marks)
    for mark in np.flatnonzero(marks).tolist():
        inside = slice(mark, int(np.flatnonzero(call == mark)[-1]) + 1)
        lost = (phase[inside] == _FORWARD) & (nodes.thread[inside] == nodes.thread[mark])
        phase[inside] = np.where(lost, _BACKWARD, phase[inside])
    # Beside a GPU the engine has a thread of its own, on which all is backward (gradients are exchanged there too).
    _, first, thread = np.unique(nodes.thread, return_index=True, return_inverse=True)
    engine = np.asarray([nodes.names[index].startswith(EVALUATE) for index in first.tolist()], bool)
    if not engine.all():
        phase[engine[thread] & (phase == _FORWARD)] = _BACKWARD
    _closures(nodes, phase)
    # Between the last of the backward pass and the optimizer's step gradients are unscaled and clipped.
    backward = np.flatnonzero(phase == _BACKWARD)
    steps = [index for index, name in enumerate(nodes.names) if name.startswith("Optimizer.step")]
    if len(backward) and steps:
        unscaling = slice(backward[-1] + 1, max(backward[-1] + 1, steps[-1]))
        phase[unscaling] = np.where(phase[unscaling] == _FORWARD, _OPTIMIZER, phase[unscaling])
    return phase


def _closures(nodes: Nodes, phase: NDArray[np.int64]) -> None:
    """Take what a closure computes inside `optimizer.step(closure)` out of the optimizer's phase.

    A closure ends with its backward pass. It begins where gradients are cleared, or with the first call of which the
    graph may be kept, as an optimizer keeps none of its own: whichever is first. The first closure begins with the step
    if it does not clear gradients first.
    """
    marks = np.asarray([name.startswith("Optimizer.") for name in nodes.names], bool)
    steps = np.asarray([name.startswith("Optimizer.step") for name in nodes.names], bool)
    mark, around = nesting.nearest(nodes.parent, marks), nesting.nearest(nodes.parent, steps)
    for step in np.flatnonzero(steps).tolist():
        end = int(np.flatnonzero(around == step)[-1]) + 1
        backward = step + np.flatnonzero(phase[step:end] == _BACKWARD)
        if not len(backward):
            continue
        clears = np.asarray([name.startswith("Optimizer.zero_grad") for name in nodes.names[step:end]], bool)
        may_begin = clears | (
            (nodes.sequence[step:end] >= 0) & (phase[step:end] == _OPTIMIZER) & (mark[step:end] == step)
        )
        begins = step + np.flatnonzero(may_begin)
        begins = begins[begins < backward[-1]]
        # Of those between two backward passes the first one: so many calls of the backward pass are before each.
        begins = begins[np.unique(np.searchsorted(backward, begins), return_index=True)[1]]
        if not (len(begins) and begins[0] < backward[0] and clears[begins[0] - step]):
            begins = np.append(step, begins[begins > backward[0]])
        for begin, stop in pairwise([*begins.tolist(), end]):
            last = backward[backward < stop].max(initial=begin)
            inside = slice(begin, int(last) + 1)
            phase[inside] = np.where((phase[inside] == _OPTIMIZER) & (mark[inside] == step), _FORWARD, phase[inside])


def _with_updates(ops: Sequence[CountedOp], names: Sequence[str], phase: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the phases of ops, with an optimizer that is written by hand, where nothing else is marked as one.

    It is what stands after the backward pass, without products, up to the last op that writes in place into what the
    forward or the backward pass read. Other numbers that are kept up to date (metrics) neither of them reads.
    """
    backward = np.flatnonzero(phase == _BACKWARD)
    if not len(backward) or (phase == _OPTIMIZER).any():
        return phase
    first = int(backward[-1]) + 1
    if any(op.costed.op_class in PRODUCTS for op in ops[first:]):
        return phase
    read = {storage for op in ops[:first] for storage in op.reads if storage >= 0}
    result = phase.copy()
    for number in range(len(ops) - 1, first - 1, -1):
        # A copy into a weight is in place and reads nothing of it. What is made anew may lie where other things lay.
        if (ops[number].costed.inplace or names[number].endswith("_")) and not read.isdisjoint(ops[number].writes):
            result[first : number + 1] = _OPTIMIZER
            break
    return result


def _backward_scopes(nodes: Nodes, phase: NDArray[np.int64], scope: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give a backward node the scope of the forward op that made it, which has its sequence number.

    Several forward calls carry one number (those that make no autograd node, before the one that does): the last one
    that began with it made the node.
    """
    own_scope = np.where(phase == _BACKWARD, -1, scope)
    for index, maker in _made_by(nodes, phase):
        own_scope[index] = scope[maker]
    return np.where(phase == _BACKWARD, _inherit(nodes.parent, own_scope), scope)


def _made_by(nodes: Nodes, phase: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield backward nodes, with what the engine does around them, and the forward calls that made them."""
    forward = np.flatnonzero((phase == _FORWARD) & (nodes.sequence >= 0))
    makers: dict[int, int] = dict(zip(nodes.sequence[forward].tolist(), forward.tolist(), strict=True))
    evaluate, is_node = _engine_nodes(nodes)
    # Each thread has numbers of its own: what is no node in the engine has one of the engine's thread.
    may_be_made = is_node | (nesting.nearest(nodes.parent, evaluate) < 0)
    for index in np.flatnonzero((phase == _BACKWARD) & (nodes.sequence >= 0) & may_be_made).tolist():
        outer = int(nodes.parent[index])
        if int(nodes.sequence[index]) not in makers or nodes.is_op[index]:
            continue
        # What the engine does around the node, such as adding up its gradients, belongs to it.
        around = outer >= 0 and nodes.names[outer].startswith(EVALUATE)
        yield outer if around else index, makers[int(nodes.sequence[index])]


def _lines(nodes: Nodes, phase: NDArray[np.int64]) -> list[str | None] | None:
    """Name for each call the line of the user's program that asked for it; None where no lines were marked.

    That is the line that was running, by the last mark before the call in its thread. A backward node was asked for by
    the line of its forward call, unless lines run inside of it, as those of a function of one's own do.
    """
    marks = [index for index, name in enumerate(nodes.names) if name.startswith(LINE)]
    if not marks:
        return None
    texts: dict[str, int] = {}
    running = np.full(len(nodes), -1, np.int64)
    for index in marks:
        running[index] = texts.setdefault(nodes.names[index].removeprefix(LINE), len(texts))
    for thread in np.unique(nodes.thread):
        calls = np.flatnonzero(nodes.thread == thread)
        last = np.maximum.accumulate(np.where(running[calls] >= 0, np.arange(len(calls)), -1))
        running[calls] = np.where(last >= 0, running[calls[last]], -1)
    own_line = np.full(len(nodes), -1, np.int64)
    for index, maker in _made_by(nodes, phase):
        own_line[index] = running[maker]
    node = nesting.nearest(nodes.parent, own_line >= 0)
    in_node = (node >= 0) & (phase == _BACKWARD) & (running == running[node])
    lines = np.where(in_node, own_line[node], running)
    names: list[str | None] = [text or None for text in texts]
    return [None if line < 0 else names[line] for line in lines.tolist()]


def _scopes_by_data(
    ops: list[CountedOp], scope: NDArray[np.int64], phase: NDArray[np.int64], names: list[str]
) -> NDArray[np.int64]:
    """Return the scopes of ops, also of those outside every layer.

    The latter get that of the op that wrote what they read (accumulating a gradient belongs to the layer whose gradient
    it is), unless that read the batch; the optimizer is its own scope.
    """
    result = scope.copy()
    writer: dict[int, int] = {}
    for number, op in enumerate(ops):
        if phase[number] == _OPTIMIZER:
            result[number] = _name(names, "optimizer")
            continue
        if result[number] < 0:
            writer_scopes = [writer[storage] for storage in op.reads if storage in writer]
            result[number] = writer_scopes[-1] if writer_scopes else _name(names, "")
        for storage in op.writes if names[result[number]] != LOADER else ():
            if storage >= 0:  # a trace recorded elsewhere names none
                writer[storage] = int(result[number])
    return result


def _name(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)


def _nearest_kept(parent: NDArray[np.int64], dropped: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return parents with dropped nodes skipped, by their places among the others."""
    place = np.cumsum(~dropped) - 1
    current = parent.copy()
    while True:
        skip = (current >= 0) & dropped[current]
        if not skip.any():
            return np.where(current >= 0, place[current], -1)
        current = np.where(skip, parent[current], current)
