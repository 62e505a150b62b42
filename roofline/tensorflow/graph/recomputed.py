"""Find the nodes that `tf.recompute_grad` computes again in the backward pass (Keras: `remat`, `RematScope`).

They have names of a forward pass, and in the gradient of a loop those of a gradient as all nodes there, but of one less
than the gradients of what is computed again. They are told by how TensorFlow has them wait for the gradient: to each
argument it adds a number that is made of the gradient, 0 or not a number, so that no optimizer takes it for what it is.
What is made of variables alone waits for nothing: it is computed again where only such nodes and gradients take it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import isnan

from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import constant, origin
from roofline.tensorflow.graph.tables import base
from roofline.tensorflow.scopes import gradient_order

_PASSED_ON = frozenset(("Cast", "Identity"))


def recomputed(graph: Graph) -> frozenset[str]:
    """Name the nodes made of such sums that are no gradients, and the nodes of functions that one of them calls."""
    barriers = [node.name for node in graph if base(node.op) in ("AddV2", "Add") and _waits(node, graph)]
    if not barriers:
        return frozenset()
    consumers: dict[str, list[str]] = {}
    for node in graph:
        for source, _ in node.inputs:
            consumers.setdefault(source, []).append(node.name)
    recomputed_names: set[str] = set()
    for order in set(map(gradient_order, barriers)):
        starts = frozenset(name for name in barriers if gradient_order(name) == order)
        results = _made_of(starts, order, consumers)
        recomputed_names |= results | _taken_by(results - starts, starts, order, graph, consumers)
    within = tuple(f"{name}/" for name in recomputed_names)
    return frozenset(recomputed_names | {node.name for node in graph if node.name.startswith(within)})


def _made_of(barriers: Set[str], order: int, consumers: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the barriers and what is made of them without another gradient. order: of the barriers."""
    results: set[str] = set()
    waiting = list(barriers)
    while waiting:
        name = waiting.pop()
        if name not in results and gradient_order(name) <= order:
            results.add(name)
            waiting += consumers.get(name, [])
    return results


def _taken_by(
    takers: Set[str], barriers: Set[str], order: int, graph: Graph, consumers: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the nodes that are no gradients, and whose results nothing takes but these takers and gradients.

    What the barriers are made of is none: a recomputed function is given it, or waits for it. order: of the barriers.
    """
    recomputed_names = set(takers)
    waiting = list(takers)
    while waiting:
        node = graph.by_name.get(waiting.pop())
        for name, _ in node.inputs if node is not None else ():
            if name in recomputed_names or name in barriers or gradient_order(name) > order:
                continue
            if all(user in recomputed_names or gradient_order(user) > order for user in consumers[name]):
                recomputed_names.add(name)
                waiting.append(name)
    return recomputed_names


def _waits(node: Node, graph: Graph) -> bool:
    """Tell whether one of the terms of a sum is 0 or not a number."""
    return any(_is_zero_or_nan(origin(graph, source, _PASSED_ON), graph) for source, _ in node.inputs)


def _is_zero_or_nan(value: Node | None, graph: Graph) -> bool:
    if value is None or value.op != "SelectV2":
        return False
    zero, nan = (constant(graph, value, place) for place in (1, 2))
    return zero == (0,) and len(nan) == 1 and isnan(nan[0])
