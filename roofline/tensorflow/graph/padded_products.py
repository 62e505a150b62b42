"""Count what is asked of a product whose factors a `Pad` filled up with zeros, and whose result is cut again.

A row that was filled up and is cut off again was not asked for, nor is what is summed where both factors were filled
up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from roofline.costs.margins import Margins, common
from roofline.tensorflow.graph.contractions import UnknownWork, sizes
from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.zero_padding import around_slice, cut_by, margins

#: Products, and the attributes that say which factor is transposed.
_PRODUCTS = {
    "MatMul": ("transpose_a", "transpose_b"),
    "BatchMatMul": ("adj_x", "adj_y"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
}
_NONE = (0, 0)


def flops(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> float | None:
    """Return the FLOPs of a product without what pairs with such zeros; None where no factor was filled up.

    consumers: of each node, by its name.
    """
    if node.op not in _PRODUCTS or len(node.inputs) < 2:
        return None
    filled = [margins(graph, name) for name, _ in node.inputs[:2]]
    if not any(filled):
        return None
    try:
        shapes = [sizes(type_, "a factor") for type_ in node.in_types[:2]]
        result = sizes(node.outputs[0], "the result")
    except UnknownWork:
        return None
    turned = [bool(node.attrs.get(name)) for name in _PRODUCTS[node.op]]
    left_edges, right_edges = (
        _last_two(edges or (_NONE,) * len(shape), swap)
        for edges, shape, swap in zip(filled, shapes, turned, strict=True)
    )
    cut = _cut(node, result, graph, consumers)[-2:]
    inner = shapes[0][-2 if turned[0] else -1] - common(left_edges[1], right_edges[0])
    rows, columns = result[-2] - common(left_edges[0], cut[0]), result[-1] - common(right_edges[1], cut[1])
    return 2.0 * prod(result[:-2]) * rows * columns * inner


def _last_two(edges: Margins, swap: bool) -> Margins:
    return (edges[-1], edges[-2]) if swap else (edges[-2], edges[-1])


def _cut(node: Node, result: Sequence[int], graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> Margins:
    """Return what all users of a result cut off of it, the same everywhere; nothing where one takes the whole."""
    slices = ("Slice", "StridedSlice")
    cuts = {
        (around_slice(user, result, graph) if user.op in slices else cut_by(user, node, graph, consumers)) or None
        for user in consumers.get(node.name, ())
    }
    return (cuts.pop() if len(cuts) == 1 else None) or (_NONE,) * len(result)
