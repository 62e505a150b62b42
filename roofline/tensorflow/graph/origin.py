"""Follow a tensor of a graph to the node that made it, and read numbers that are constant."""

from __future__ import annotations

from collections.abc import Collection

from roofline.tensorflow.graph.graph import Graph, Node


def origin(graph: Graph, name: str, through: Collection[str]) -> Node | None:
    """Return the node that made what a node of that name gives. through: ops that only hand on their first input."""
    node = graph.by_name.get(name)
    for _ in graph:  # no chain is longer, but where the graph is damaged
        if node is None or node.op not in through or not node.inputs:
            break
        node = graph.by_name.get(node.inputs[0][0])
    return node


def constant(graph: Graph, node: Node, place: int) -> tuple[float, ...]:
    """Return the numbers of an input; nothing where it is no constant, or a large one."""
    source = graph.by_name.get(node.inputs[place][0]) if place < len(node.inputs) else None
    return source.attrs.get("value", ()) if source is not None and source.op == "Const" else ()
