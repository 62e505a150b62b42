"""What is asked for of a convolution whose image another node filled up with zeros first.

A framework that pads by a layer of its own asks for no products with these zeros, as one that leaves padding to the
convolution does not: model FLOPs are of positions inside the image. Grappler folds such a `Pad` into the convolution,
where it can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofline.tensorflow.graph.contractions import Margins, UnknownWork, inside
from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.tables import CONVOLUTIONS, base


def flops(node: Node, graph: Graph, consumers: Mapping[str, Sequence[Node]]) -> float | None:
    """The FLOPs of a convolution without what pairs with such zeros; None for any other node.

    consumers: of each node, by its name.
    """
    if base(node.op) not in CONVOLUTIONS or len(node.inputs) < 2:
        return None
    convolution = node
    if "BackpropInput" in node.op:
        # Its image is what it makes, whose margins are cut off again; they are those of the forward pass.
        sharing = [one for one in consumers.get(node.inputs[1][0], ()) if one.inputs[1:2] == node.inputs[1:2]]
        forward = [one for one in sharing if base(one.op) in CONVOLUTIONS and "Backprop" not in one.op]
        if len(forward) != 1 or not all(one.op == "Slice" for one in consumers.get(node.name, ())):
            return None
        convolution = forward[0]
    edges = margins(graph, convolution.inputs[0][0])
    try:
        return inside(node, edges) if edges else None
    except UnknownWork:
        return None


def margins(graph: Graph, name: str) -> Margins:
    """List the zeros before and behind what a node gives, in each dimension; nothing where it puts none there."""
    pad = graph.by_name.get(name)
    if pad is not None and pad.op == "StridedSliceGrad":
        return around_slice(pad, numbers(graph, pad.inputs[0][0]), 1, graph) or ()
    if pad is None or pad.op != "Pad" or len(pad.inputs) < 2:
        return ()
    values = numbers(graph, pad.inputs[1][0])
    return tuple(zip(values[::2], values[1::2], strict=True)) if len(values) % 2 == 0 else ()


def around_slice(node: Node, sizes: Sequence[int], first: int, graph: Graph) -> Margins | None:
    """Return what a StridedSlice leaves out of an array, or its gradient fills up; None where it takes no whole rows.

    first: which input tells the begin; the end and the strides are the next ones.
    """
    begins, ends, strides = (numbers(graph, name) for name, _ in node.inputs[first : first + 3])
    if any(node.attrs.get(f"{mask}_mask") for mask in ("ellipsis", "new_axis", "shrink_axis")) or set(strides) != {1}:
        return None
    if not sizes or len(begins) != len(ends) or len(ends) > len(sizes):
        return None
    free_begin, free_end = (int(node.attrs.get(f"{mask}_mask", 0)) for mask in ("begin", "end"))
    found = []
    for place, size in enumerate(sizes):
        begin, end = (begins[place], ends[place]) if place < len(ends) else (0, size)
        begin = 0 if free_begin >> place & 1 else begin + size if begin < 0 else begin
        end = size if free_end >> place & 1 else end + size if end < 0 else min(end, size)
        found.append((begin, size - end))
    return tuple(found)


def numbers(graph: Graph, name: str) -> tuple[int, ...]:
    """Return the values of a constant; nothing where the node is none."""
    told = graph.by_name.get(name)
    values = told.attrs.get("value", ()) if told is not None and told.op == "Const" else ()
    return tuple(int(value) for value in values)
