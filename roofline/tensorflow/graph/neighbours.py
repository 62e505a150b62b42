"""Complete nodes with what their work depends on and other nodes tell.

Along which axes a Fourier transform of several goes is a constant, and so is how many steps a recurrent layer does at
most. How many numbers a compressed sparse matrix (CSR) holds is hidden in it: it is seen where one is made of numbers,
or taken apart into them. How large a result is that no node reads, a run does not tell either.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from roofline.tensorflow.graph.graph import Node, Source, Tensor
from roofline.tensorflow.graph.tables import FORWARDING

#: The attributes of the axes that are transformed, of the most steps that are done, and of results of no known size
#: that no other node reads.
AXES, STEPS, UNREAD = "transformed_axes", "steps", "unread"

#: Attributes that are constants among the inputs, and where.
_CONSTANTS = {
    **{f"{inverse}{real}FFTND": (AXES, 2) for inverse in ("", "I") for real in ("", "R")},
    **dict.fromkeys(("BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad"), (STEPS, 0)),
}
#: Ops whose result holds a number where their first input does.
_ALIKE = FORWARDING | {"SparseMatrixTranspose", "SparseMatrixMul", "SparseMatrixSoftmax", "SparseMatrixSoftmaxGrad"}


def completed(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Return the nodes of a graph: compressed matrices as the numbers that they hold, transforms with their axes."""
    original_nodes = tuple(nodes)
    numbers, read = _Numbers(original_nodes), {source for node in original_nodes for source in node.inputs}
    return tuple(_with_unread(numbers.on_edges(_with_constant(node, numbers.by_name)), read) for node in original_nodes)


def _with_unread(node: Node, read: Set[Source]) -> Node:
    results = enumerate(node.outputs)
    unread = [
        place
        for place, output in results
        if output.dtype and output.elements is None and (node.name, place) not in read
    ]
    return replace(node, attrs={**node.attrs, UNREAD: tuple(unread)}) if unread else node


def _with_constant(node: Node, by_name: dict[str, Node]) -> Node:
    attribute, place = _CONSTANTS.get(node.op, ("", 0))
    if not attribute or len(node.inputs) <= place:
        return node
    constant = by_name.get(node.inputs[place][0])
    numbers = None if constant is None or constant.op != "Const" else constant.attrs.get("value")
    return replace(node, attrs={**node.attrs, attribute: numbers}) if numbers else node


class _Numbers:
    """The numbers that compressed matrices of a graph hold, as tensors of one dimension."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.by_name = {node.name: node for node in nodes}
        unpacking = (node for node in self.by_name.values() if node.op == "CSRSparseMatrixToSparseTensor")
        self._apart = {node.inputs[0]: node.outputs[1] for node in unpacking if node.inputs and len(node.outputs) > 1}

    def on_edges(self, node: Node) -> Node:
        """Return a node of such matrices with their numbers in the place of what cannot be looked into."""
        if "SparseMatrix" not in node.op:
            return node
        edges = zip(node.inputs, node.in_types, strict=True)
        return replace(
            node,
            in_types=tuple(tensor if tensor.dtype else self._of(source) or tensor for source, tensor in edges),
            outputs=tuple(
                tensor if tensor.dtype else self._of((node.name, place)) or tensor
                for place, tensor in enumerate(node.outputs)
            ),
        )

    def _of(self, source: Source, visited: frozenset[Source] = frozenset()) -> Tensor | None:
        """Return the numbers of the matrix that comes from a node; None where nothing tells, or for anything else."""
        node = self.by_name.get(source[0])
        if source in self._apart:
            return self._apart[source]
        if node is None or source in visited or len(node.in_types) < 1:
            return None
        if node.op == "SparseTensorToCSRSparseMatrix":
            return node.in_types[1]
        if node.op == "DenseToCSRSparseMatrix":
            places = node.in_types[1].shape
            return Tensor(node.in_types[0].dtype, places[:1] if places else None)
        return self._of(node.inputs[0], visited | {source}) if node.op in _ALIKE else None
