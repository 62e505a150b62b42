"""Find the nodes that `tf.recompute_grad` computes again in the backward pass (Keras: `remat`, `RematScope`).

They have names of a forward pass, and in the gradient of a loop those of a gradient as all nodes there, but of one less
than the gradients of what is computed again. They are told by how TensorFlow has them wait for the gradient: to each
argument it adds a number that is made of the gradient, 0 or not a number, so that no optimizer takes it for what it is.
What is made of variables alone waits for nothing: it is computed again where only such nodes and gradients take it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import isnan

from roofline.costs.repeated import named_from_outside
from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import constant, origin
from roofline.tensorflow.graph.tables import base
from roofline.tensorflow.scopes import gradient_order

_PASSED_ON = frozenset(("Cast", "Identity"))


def recomputed(graph: Graph) -> Mapping[str, str]:
    """Map the nodes made of such sums that are no gradients, and those of functions that they call, to a checkpoint.

    It is named by the choices of the recomputed functions around a node (`costs.repeated`).
    """
    barriers: dict[str, list[str]] = {}
    for node in graph:
        if base(node.op) in ("AddV2", "Add") and (choice := _choice(node, graph)) is not None:
            barriers.setdefault(choice, []).append(node.name)
    if not barriers:
        return {}
    consumers: dict[str, list[str]] = {}
    for node in graph:
        for source, _ in node.inputs:
            consumers.setdefault(source, []).append(node.name)
    starts = frozenset[str]().union(*barriers.values())
    members: dict[str, set[str]] = {}
    for choice, sums in barriers.items():
        order = gradient_order(sums[0])
        results = _made_of(sums, order, consumers)
        members[choice] = results | _taken_by(results - starts, starts, order, graph, consumers)
        within = tuple(f"{name}/" for name in members[choice])
        members[choice] |= {node.name for node in graph if node.name.startswith(within)}
    return named_from_outside(members)


def _made_of(barriers: Sequence[str], order: int, consumers: Mapping[str, Sequence[str]]) -> set[str]:
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


def _choice(node: Node, graph: Graph) -> str | None:
    """Name the term of a sum that is 0 or not a number; None where none is."""
    terms = (origin(graph, source, _PASSED_ON) for source, _ in node.inputs)
    return next((term.name for term in terms if term is not None and _is_zero_or_nan(term, graph)), None)


def _is_zero_or_nan(value: Node, graph: Graph) -> bool:
    if value.op != "SelectV2":
        return False
    zero, nan = (constant(graph, value, place) for place in (1, 2))
    return zero == (0,) and len(nan) == 1 and isnan(nan[0])
