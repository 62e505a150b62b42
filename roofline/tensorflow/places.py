"""Phase, scope and meaning of the nodes of one graph: by their names, and by their neighbours where names do not say.

- Summing gradients has no name of its own (`AddN_3`): it is backward, and lies where the last of its terms lies.
- What else is computed from gradients outside of every scope of the optimizer, such as clipping or an update written
  by hand, is the optimizer's; in a graph that updates nothing it is backward.
- What a custom gradient computes (`tf.custom_gradient`, as of `tf.nn.silu`) has names of a forward pass, but no scope
  and no gradient of its own: it is backward, with what it computes again of the forward pass.
- What a gradient computes again of the forward pass (`tf.recompute_grad`) is backward.
- A scope with a reciprocal square root and a mean and no contraction is a normalisation, whatever its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from roofline.core.vocabulary import OpClass
from roofline.tensorflow.graph.graph import BYTES, Graph, Node, Source
from roofline.tensorflow.graph.recomputed import recomputed
from roofline.tensorflow.graph.tables import (
    CONTRACTIONS,
    FORWARDING,
    GATHERS,
    RESOURCE_SCATTERS,
    SEGMENTS,
    base,
    update_rule,
)
from roofline.tensorflow.scopes import canonical, original, path, place, semantic
from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER, Place

#: Ops that add gradients up, or that make a dense one of rows.
_ACCUMULATES = frozenset(("AddN", "AddV2", "Add", "AccumulateNV2", "UnsortedSegmentSum", "ConcatV2"))
#: Arguments and results are named by the user, and may be called what a scope is called.
_ENDS = frozenset(("Arg", "Retval", "Placeholder", "DeviceArg", "DeviceRetval"))
_CENTRES, _MEANS = frozenset(("Rsqrt", "RsqrtGrad")), frozenset(("Mean", "Sum", "SquaredDifference"))
_ASSIGNS = frozenset(("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", *RESOURCE_SCATTERS))
_CONSTANTS = frozenset(("Const", "HostConst", "Fill", "OnesLike", "ZerosLike"))
#: What tells of numbers whether they are finite, for updates that skip gradients that are not.
_ASKS = frozenset(("IsFinite", "IsInf", "IsNan", "All", "Any", "LogicalAnd", "LogicalNot", "LogicalOr"))
#: How far a scope is handed on from term to sum to sum.
_HOPS = 8


class Places:
    """The places of the nodes of `after`. before: the same function as the program wrote it, for the names of its ops.

    optimizers: first parts of scopes whose ops are the optimizer's, beside those that begin with "optimizer".
    """

    def __init__(self, after: Graph, before: Graph, optimizers: tuple[str, ...] = ("optimizer",)) -> None:
        """Places all nodes at once."""
        named = [node.name for graph in (after, before) for node in graph if base(node.op) not in _ENDS]
        self._ops = frozenset(path(name)[1] for name in named)
        self._optimizers = optimizers
        # Grappler folds away gradients that are constants, and with them what tells a sum of gradients: ask before it.
        asked = _by_neighbours(before, {node.name: self._by_name(node) for node in before})
        repeated = (name for name in recomputed(before) if asked[name].phase == FORWARD)
        asked |= {name: Place(BACKWARD, asked[name].scope) for name in repeated}
        by_canonical = {canonical(name): where for name, where in asked.items() if where.phase != FORWARD}
        named_places = {node.name: by_canonical.get(original(node.name)) or self._by_name(node) for node in after}
        self._places = _by_neighbours(after, named_places)
        self._norms = _norm_scopes(after, self._places)

    def of(self, node: Node) -> Place:
        """Phase and scope of a node of either graph."""
        return self._places.get(node.name) or self._by_name(node)

    def semantic(self, node: Node) -> OpClass | None:
        """Tell whether the node is a part of a softmax or a normalisation, where its scope says so."""
        scope = self.of(node).scope or ""
        part = semantic(scope)
        return "normalisation" if part is None and _ancestors(scope) & self._norms else part

    def _by_name(self, node: Node) -> Place:
        named_place = place(node.name, self._optimizers, self._ops)
        return Place(OPTIMIZER, named_place.scope) if update_rule(base(node.op)) is not None else named_place


def _reached(starts: Iterable[str], edges: Mapping[str, list[str]]) -> set[str]:
    waiting = list(starts)
    reached = set(waiting)
    while waiting:
        for neighbour in edges.get(waiting.pop(), ()):
            if neighbour not in reached:
                reached.add(neighbour)
                waiting.append(neighbour)
    return reached


def _made_of(graph: Graph, gradients: Iterable[str], needed: Set[str]) -> tuple[set[str], set[str]]:
    """The gradients and what is made of their values; and that with what is made of variables that these change.

    Grappler merges equal nodes: a constant or a shape that only has the name of a gradient may be the forward pass's.
    So no gradient is a constant, and they go on where the edge may hold numbers that are no integers, or whether some
    are (`IsFinite`). needed: by gradients; a variable of which that is made is a weight, and no moment of one.
    """
    edges: dict[str, list[str]] = {}
    reads: dict[Source, set[str]] = {}
    changes: dict[str, Source] = {}
    by_name = graph.by_name
    for node in graph:
        for source, tensor in zip(node.inputs, node.in_types, strict=True):
            asks = source[0] in by_name and base(by_name[source[0]].op) in _ASKS
            if tensor.handle and base(node.op) in _ASSIGNS:
                changes[node.name] = source
            elif tensor.handle:
                reads.setdefault(source, set()).add(node.name)
            elif tensor.floating or asks or tensor.dtype not in BYTES:
                edges.setdefault(source[0], []).append(node.name)
    starts = (name for name in gradients if name not in by_name or base(by_name[name].op) not in _CONSTANTS)
    of_gradients = _reached(starts, edges) | set(gradients)
    with_variables = of_gradients
    while True:
        changed = (reads.get(variable, set()) for name, variable in changes.items() if name in with_variables)
        read_after = set[str]().union(*(readers for readers in changed if readers.isdisjoint(needed)))
        if read_after <= with_variables:
            return of_gradients, with_variables
        with_variables = _reached(with_variables | read_after, edges)


def _by_neighbours(graph: Graph, named_places: dict[str, Place]) -> dict[str, Place]:
    forth: dict[str, list[str]] = {}
    back: dict[str, list[str]] = {}
    for node in graph:
        for source, _ in node.inputs:
            forth.setdefault(source, []).append(node.name)
            back.setdefault(node.name, []).append(source)
    gradients = [name for name, where in named_places.items() if where.phase == BACKWARD]
    before_gradients = _reached(gradients, back)
    of_gradients, after_gradients = _made_of(graph, gradients, before_gradients)
    optimizes = any(where.phase == OPTIMIZER for where in named_places.values()) or any(
        base(graph.by_name[name].op) in _ASSIGNS for name in after_gradients if name in graph.by_name
    )
    result = dict(named_places)
    differentiated = _differentiated(gradients)
    custom: set[str] = set()
    for name in after_gradients:
        where = named_places.get(name)
        if where is None or where.phase != FORWARD:
            continue
        if not where.scope and _accumulates(graph.by_name[name], of_gradients):
            result[name] = Place(BACKWARD, where.scope)
        elif name not in before_gradients:
            result[name] = Place(OPTIMIZER if optimizes else BACKWARD, where.scope)
        elif _alone(name, differentiated):
            custom.add(name)
        # Otherwise it is a loss of gradients, which has a gradient itself.
    waiting = list(custom)
    while waiting:
        for source in back.get(waiting.pop(), ()):
            forward = (
                source in named_places and named_places[source].phase == FORWARD and _alone(source, differentiated)
            )
            if forward and source not in custom and custom.issuperset(forth[source]):
                custom.add(source)
                waiting.append(source)
    result |= dict.fromkeys(custom, Place(BACKWARD, ""))
    _hand_on(graph, result)
    return result


def _accumulates(node: Node, of_gradients: Set[str]) -> bool:
    """Tell whether a node adds up gradients alone: with anything else, as a moment, they are an update."""
    terms = (source for (source, _), tensor in zip(node.inputs, node.in_types, strict=True) if tensor.floating)
    return base(node.op) in _ACCUMULATES and set(terms) <= of_gradients


def _alone(name: str, differentiated: set[tuple[str, ...]]) -> bool:
    """Tell whether a node's name has no scope, and no gradient bears it."""
    parts = path(name)[1]
    return len(parts) == 1 and parts not in differentiated


def _differentiated(gradients: Iterable[str]) -> set[tuple[str, ...]]:
    """The paths of ops of which some of these nodes are the gradients, and of the scopes around them."""
    # Symbolic gradients of an op `a/MatMul` lie in `a/MatMul_grad`.
    paths = (tuple(part.removesuffix("_grad") for part in path(name)[1]) for name in gradients)
    return {parts[:length] for parts in paths for length in range(1, len(parts))}


def _hand_on(graph: Graph, places: dict[str, Place]) -> None:
    """Backward nodes outside of every scope get that of their last input that has one.

    A gradient's rows that are added up into a table lie where the rows were gathered: where the same index was used.
    """
    gathers = {
        _root(graph, node.inputs[1]): places[node.name].scope
        for node in graph
        if base(node.op) in GATHERS and len(node.inputs) > 1
    }
    for node in graph:
        if base(node.op) in SEGMENTS and len(node.inputs) > 1 and places[node.name] == Place(BACKWARD, ""):
            scope = gathers.get(_root(graph, node.inputs[1]))
            places[node.name] = Place(BACKWARD, scope or "")
    for _ in range(_HOPS):
        changed = False
        for node in graph:
            current = places[node.name]
            if current.phase != BACKWARD or current.scope:
                continue
            near = [places[source].scope for source, _ in node.inputs if source in places]
            scoped = [scope for scope in near if scope]
            if scoped:
                places[node.name] = Place(BACKWARD, scoped[-1])
                changed = True
        if not changed:
            return


def _root(graph: Graph, source: Source) -> Source:
    """Follow a value to its origin, behind everything that only hands it on."""
    visited = set()
    while source not in visited:
        visited.add(source)
        node = graph.by_name.get(source[0])
        if node is None or base(node.op) not in FORWARDING or not node.inputs:
            break
        source = node.inputs[0]
    return source


def _ancestors(scope: str) -> set[str]:
    parts = scope.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts) + 1)} if scope else set()


def _norm_scopes(graph: Graph, places: Mapping[str, Place]) -> frozenset[str]:
    ops_of: dict[str, set[str]] = {}
    ops_below: dict[str, set[str]] = {}
    for node in graph:
        where = places[node.name]
        if where.scope and where.phase != OPTIMIZER:
            plain = base(node.op)
            ops_of.setdefault(where.scope, set()).add(plain)
            for scope in _ancestors(where.scope):
                ops_below.setdefault(scope, set()).add(plain)
    return frozenset(
        scope
        for scope, ops in ops_of.items()
        if ops & _CENTRES and ops_below[scope] & _MEANS and not ops_below[scope] & CONTRACTIONS
    )
