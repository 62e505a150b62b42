"""Compulsory traffic of a TensorFlow node, tensor by tensor (docs/counting.md).

Each distinct input is read once, each output written once; what only says how (shapes, axes, seeds) is no traffic;
gathers, slices and scatters touch their rows; updates of parameters happen in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from roofline.costs.counted import Access
from roofline.tensorflow.graph import tables as kinds
from roofline.tensorflow.graph.contractions import UnknownWork, held, sizes, sparse_factors
from roofline.tensorflow.graph.graph import BYTES, Node, Tensor
from roofline.tensorflow.graph.neighbours import UNREAD

#: How many results there are; those beyond are workspaces of the kernel that computes the gradient.
_RESULTS: dict[str, int] = {
    **dict.fromkeys((op for op in kinds.CLASS_OF if op.startswith("FusedBatchNorm")), 3),
    **dict.fromkeys(kinds.POOLS, 1),
}
#: Of the gradient of a batch norm: dy, x, scale, and the mean and variance that the forward pass kept.
_NORM_GRADIENT = 5
#: Of the gradient of pooling: the image, its result and the gradient, no workspace.
_INPUTS = dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), 3)
#: A row of a list of tensors that begins at such an address is not copied (Eigen's alignment).
_ALIGNED = 64


def accesses(node: Node) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """(reads, writes) of a node that computes or moves something. UnknownWork where a size is not known."""
    op = kinds.base(node.op)
    rule = kinds.update_rule(op)
    if rule is not None:
        return _update(node, *rule)
    if op in ("AssignAddVariableOp", "AssignSubVariableOp"):
        size = _bytes(node.in_types[1])
        return ((True, 0, size), (True, 1, size)), ((True, 0, size),)
    if op in kinds.RESOURCE_SCATTERS or op == "ResourceStridedSliceAssign":
        return _scatter(node, op)
    if op in kinds.GATHERS:
        return _gather(node, op)
    if op in kinds.SPARSE_SEGMENTS:
        touched = prod(sizes(node.in_types[1], "the index")) * _row(node.in_types[0])
        reads = ((True, 0, touched), *(r for r in _reads(node, op) if r[1] != 0))
        return reads, _writes(node, op)
    if op in ("SparseTensorDenseMatMul", "SparseMatrixMatMul"):
        # No more of the dense factor can be touched than there is; which rows repeat is data.
        place = len(node.in_types) - 1
        touched = float(prod(sparse_factors(node)) * BYTES.get(node.in_types[place].dtype or "", 0))
        reads = tuple(access for access in _reads(node, op) if access[1] != place)
        return (*reads, (True, place, min(touched, _bytes(node.in_types[place])))), _writes(node, op)
    if op in ("Slice", "StridedSlice", "MatrixDiagPart", "MatrixDiagPartV3", "DiagPart"):
        return ((True, 0, _bytes(node.outputs[0])),), _writes(node, op)
    if op in ("TensorListStack", "TensorListConcatV2", "TensorListGather"):
        return ((True, 0, _bytes(node.outputs[0])),), _writes(node, op)
    if op == "TensorListFromTensor":
        size = _bytes(node.in_types[0])
        return ((True, 0, size),), ((False, 0, size),)
    if op == "CheckNumerics":
        return _reads(node, op), ()
    return _reads(node, op), _writes(node, op)


#: Bytes of an index in a compressed matrix.
_INDEX = 4
_NOWHERE: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
#: Where compressed matrices are among inputs and outputs.
_COMPRESSED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    **dict.fromkeys(("SparseTensorToCSRSparseMatrix", "DenseToCSRSparseMatrix", "SparseMatrixZeros"), ((), (0,))),
    **dict.fromkeys(
        (
            "SparseMatrixMatMul CSRSparseMatrixToDense CSRSparseMatrixToSparseTensor CSRSparseMatrixComponents "
            "SparseMatrixOrderingAMD"
        ).split(),
        ((0,), ()),
    ),
    **dict.fromkeys(
        "SparseMatrixTranspose SparseMatrixMul SparseMatrixSoftmax SparseMatrixSparseCholesky".split(), ((0,), (0,))
    ),
    **dict.fromkeys("SparseMatrixAdd SparseMatrixSoftmaxGrad SparseMatrixSparseMatMul".split(), ((0, 1), (0,))),
}


def _with_indices(tensors: Sequence[Tensor], places: Sequence[int], accesses: Iterable[Access]) -> tuple[Access, ...]:
    """The accesses, those of compressed matrices with two indices of each number. UnknownWork where one is not seen."""
    indices = {place: 2.0 * _INDEX * held(tensors[place]) for place in places if place < len(tensors)}
    return tuple((is_input, place, size + indices.get(place, 0.0)) for is_input, place, size in accesses if size)


def moves_nothing(node: Node) -> bool:
    """Tell whether a node only hands on what it got: a view."""
    op = kinds.base(node.op)
    if op == "TensorListFromTensor" and node.in_types and node.in_types[0].elements is not None:
        return _row(node.in_types[0]) % _ALIGNED == 0
    if op in _REDUCING and node.in_types and node.outputs:
        # Nothing to add up: the kernel hands its input's buffer on (seen: 1 us for 16 MB).
        elements = node.in_types[0].elements
        return elements is not None and elements == node.outputs[0].elements
    if op in _ROWS and node.outputs:
        return _takes_rows(node, op)
    return op in kinds.VIEWS or op in kinds.CALLS


def shown(node: Node) -> int | None:
    """The input whose buffer the outputs of a reduction of nothing or of a slice of rows are; None for other nodes."""
    op = kinds.base(node.op)
    if (op in _REDUCING or op in _ROWS) and moves_nothing(node):
        return _ROWS.get(op, 0)
    return None


#: Where the data is among the inputs of ops that take rows of it.
_ROWS = {"Slice": 0, "Split": 1, "SplitV": 0, "Unpack": 0}


def _takes_rows(node: Node, op: str) -> bool:
    """Tell whether each output is a run of whole rows, which these kernels do not copy if aligned in memory.

    (Seen: 0.4 us for 16 MB along the first dimension, 1 ms along the second.) A StridedSlice may step over rows, which
    its shapes do not tell, and counts as a copy.
    """
    if len(node.in_types) <= _ROWS[op]:
        return False
    source = node.in_types[_ROWS[op]]
    if source.elements is None or not source.shape or not _row(source) or _row(source) % _ALIGNED:
        return False
    inner = source.shape[1:]
    if op == "Unpack":
        return bool(node.attrs.get("axis", 0) == 0)
    return all(
        output.shape is not None and output.shape[1:] == inner and len(output.shape) == len(source.shape)
        for output in node.outputs
    )


#: Reductions whose kernels look first whether there is anything to reduce.
_REDUCING = frozenset(("Sum", "Mean", "Max", "Min", "Prod", "All", "Any"))


def _bytes(tensor: Tensor) -> float:
    size = tensor.bytes
    if size is None:
        sizes(tensor, "a tensor")  # says which part of the shape is missing
        raise UnknownWork("a tensor has elements of no fixed size")
    return size


def _row(tensor: Tensor) -> float:
    """Bytes of one row: an element of the first dimension."""
    return float(prod(sizes(tensor, "the table")[1:]) * BYTES.get(tensor.dtype or "", 0))


def _settings(op: str, inputs: int) -> set[int]:
    return {place % inputs if inputs else 0 for place in kinds.SETTINGS.get(op, ())}


def data_inputs(node: Node) -> Iterator[int]:
    """The places of the inputs that carry data: each tensor once, no shapes and axes, no handles of variables."""
    op = kinds.base(node.op)
    settings = _settings(op, len(node.in_types))
    if not node.attrs.get("use_peephole"):
        settings.update(kinds.PEEPHOLES.get(op, ()))
    counted = set()
    for place, (source, tensor) in enumerate(zip(node.inputs, node.in_types, strict=True)):
        if place not in settings and source not in counted and tensor.dtype is not None and not tensor.handle:
            counted.add(source)
            yield place


def _reads(node: Node, op: str) -> tuple[Access, ...]:
    gradient = op.startswith("FusedBatchNormGrad")
    last = _INPUTS.get(op, _NORM_GRADIENT if gradient else len(node.inputs))
    reads = []
    for place in data_inputs(node):
        if place >= last:
            continue
        tensor = node.in_types[place]
        # What the forward pass kept for the gradient has one number per channel, as the scale has.
        reads.append((True, place, _bytes(node.in_types[2] if gradient and place > 2 else tensor)))
    return _with_indices(node.in_types, _COMPRESSED.get(op, _NOWHERE)[0], reads)


def _writes(node: Node, op: str) -> tuple[Access, ...]:
    results = node.outputs[: _RESULTS.get(op, len(node.outputs))]
    left_out = node.attrs.get(UNREAD, ())
    read_results = ((place, tensor) for place, tensor in enumerate(results) if place not in left_out)
    writes = [(False, place, _bytes(tensor)) for place, tensor in read_results if tensor.dtype is not None]
    return _with_indices(results, _COMPRESSED.get(op, _NOWHERE)[1], writes)


def _gather(node: Node, op: str) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """No more of a table can be touched than there is; which rows repeat is data."""
    table, moved = node.in_types[0].bytes, _bytes(node.outputs[0])
    touched = moved if table is None else min(moved, table)
    return ((True, 0, touched), (True, 1, _bytes(node.in_types[1]))), _writes(node, op)


def _scatter(node: Node, op: str) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """Rows of a variable are written in place, and read where they are combined with what is there."""
    values = 4 if op == "ResourceStridedSliceAssign" else 2
    moved = _bytes(node.in_types[values])
    reads: list[Access] = [(True, values, moved)]
    if values == 2:
        reads.append((True, 1, _bytes(node.in_types[1])))
    if kinds.RESOURCE_SCATTERS.get(op):
        reads.append((True, 0, moved))
    return tuple(reads), ((True, 0, moved),)


def _update(node: Node, rule: str, sparse: bool) -> tuple[tuple[Access, ...], tuple[Access, ...]]:
    """The parameter and its state are read and written, as much of them as the gradient covers."""
    if rule not in kinds.UPDATES:
        raise UnknownWork(f"no rule for {node.op}")
    size = _bytes(node.in_types[kinds.GRADIENT[rule]])
    state: tuple[Access, ...] = tuple((True, place, size) for place in range(kinds.UPDATES[rule][0]))
    return state + _reads(node, kinds.base(node.op)), state
