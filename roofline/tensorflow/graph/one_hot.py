"""Products of which one factor is one-hot: each row, or column, has a single 1, and the rest of it are zeros.

Such a product picks rows of the other factor, and its gradient adds rows up by their index: what `tf.gather` does
without a product. One-hot is what `OneHot` makes of 1 and 0.
"""

from __future__ import annotations

from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.tables import PRODUCTS, base

#: What hands on the elements that it is given, in another place or type: all of its first input's.
_REARRANGES = frozenset("Identity Cast Reshape Transpose ExpandDims Squeeze StopGradient".split())
#: A chain of these longer than this is damage.
_MAX_CHAIN = 100


def picks(node: Node, graph: Graph) -> bool:
    """Tell whether a node is a product with such a matrix."""
    if base(node.op) not in PRODUCTS:
        return False
    return any(_is_one_hot(graph.by_name.get(name), graph) for name, _ in node.inputs)


def _is_one_hot(value: Node | None, graph: Graph) -> bool:
    for _ in range(_MAX_CHAIN):
        if value is None or value.op not in _REARRANGES or not value.inputs:
            break
        value = graph.by_name.get(value.inputs[0][0])
    if value is None or value.op != "OneHot" or len(value.inputs) < 4:
        return False
    on_value, off_value = (_number(graph.by_name.get(name)) for name, _ in value.inputs[2:4])
    return on_value == 1 and off_value == 0


def _number(value: Node | None) -> float | None:
    constant = value.attrs.get("value") if value is not None and value.op == "Const" else None
    if isinstance(constant, tuple):
        constant = constant[0] if len(constant) == 1 else None
    return float(constant) if isinstance(constant, (int, float)) else None
