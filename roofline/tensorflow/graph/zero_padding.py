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
    margins = _margins(graph, convolution.inputs[0][0])
    try:
        return inside(node, margins) if margins else None
    except UnknownWork:
        return None


def _margins(graph: Graph, name: str) -> Margins:
    """The zeros before and behind what a node gives, in each dimension; nothing where it is no `Pad`."""
    pad = graph.by_name.get(name)
    if pad is None or pad.op != "Pad" or len(pad.inputs) < 2:
        return ()
    told = graph.by_name.get(pad.inputs[1][0])
    values = told.attrs.get("value", ()) if told is not None and told.op == "Const" else ()
    return tuple(zip(values[::2], values[1::2], strict=True)) if len(values) % 2 == 0 else ()
