"""Products of which one factor is one-hot: each row, or column, has a single 1, and the rest of it are zeros.

Such a product picks rows of the other factor, and its gradient adds rows up by their index: what `tf.gather` does
without a product. One-hot is what `OneHot` makes of 1 and 0, and what `tf.eye` makes. A convolution with an identity
matrix in another shape picks the patches of an image.
"""

from __future__ import annotations

from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import constant, origin
from roofline.tensorflow.graph.tables import CONVOLUTIONS, PRODUCTS, base

#: What hands on the elements that it is given, in another place or type: all of its first input's.
_REARRANGES = frozenset("Identity Cast Reshape Transpose ExpandDims Squeeze StopGradient".split())

#: What puts numbers on the diagonal of a matrix of zeros.
_DIAGONAL = frozenset(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"))


def picks(node: Node, graph: Graph) -> bool:
    """Tell whether a node is a product with such a matrix, or a convolution with one, or the gradient of its image."""
    if base(node.op) in CONVOLUTIONS and "BackpropFilter" not in node.op:
        return _picks_patches(node, graph)
    if base(node.op) not in PRODUCTS:
        return False
    return any(_is_one_hot(origin(graph, name, _REARRANGES), graph) for name, _ in node.inputs)


def _picks_patches(convolution: Node, graph: Graph) -> bool:
    """Tell whether the kernel has a 1 for each of its results: all places and channels in a row, and the results."""
    matrix = origin(graph, convolution.inputs[1][0], _REARRANGES) if len(convolution.inputs) > 1 else None
    if matrix is None or not _is_identity(matrix, graph):
        return False
    rows, kernel = matrix.outputs[0].shape, convolution.in_types[1].shape
    return bool(rows and kernel and rows[-1] is not None and rows[-1] == kernel[-1])


def _is_one_hot(value: Node | None, graph: Graph) -> bool:
    if value is None or value.op != "OneHot":
        return value is not None and _is_identity(value, graph)
    return [constant(graph, value, place) for place in (2, 3)] == [(1,), (0,)]


def _is_identity(value: Node, graph: Graph) -> bool:
    """Tell whether a node makes a matrix of zeros with a 1 in each row."""
    if base(value.op) not in _DIAGONAL or not value.inputs:
        return False
    ones = graph.by_name.get(value.inputs[0][0])
    numbers = constant(graph, ones, 1) if ones is not None and ones.op == "Fill" else constant(graph, value, 0)
    return set(numbers) == {1}
