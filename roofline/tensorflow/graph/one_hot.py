"""Products of which one factor is one-hot: each row, or column, has a single 1, and the rest of it are zeros.

Such a product picks rows of the other factor, and its gradient adds rows up by their index: what `tf.gather` does
without a product. One-hot is what `OneHot` makes of 1 and 0.
"""

from __future__ import annotations

from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import constant, origin
from roofline.tensorflow.graph.tables import PRODUCTS, base

#: What hands on the elements that it is given, in another place or type: all of its first input's.
_REARRANGES = frozenset("Identity Cast Reshape Transpose ExpandDims Squeeze StopGradient".split())


def picks(node: Node, graph: Graph) -> bool:
    """Tell whether a node is a product with such a matrix."""
    if base(node.op) not in PRODUCTS:
        return False
    return any(_is_one_hot(origin(graph, name, _REARRANGES), graph) for name, _ in node.inputs)


def _is_one_hot(value: Node | None, graph: Graph) -> bool:
    if value is None or value.op != "OneHot":
        return False
    return [constant(graph, value, place) for place in (2, 3)] == [(1,), (0,)]
