"""Direct linear algebra among TensorFlow's ops: factorisations and solving (`roofline.costs.linear_algebra`)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from roofline.core.cost import Cost
from roofline.costs import linear_algebra as formulas
from roofline.tensorflow.graph.contractions import UnknownWork, sizes
from roofline.tensorflow.graph.graph import Node


def _matrices(node: Node, place: int = 0) -> tuple[int, int, int]:
    """(rows, columns, how many) of an input."""
    shape = sizes(node.in_types[place], "a matrix")
    if len(shape) < 2:
        raise UnknownWork("an input is no matrix")
    return shape[-2], shape[-1], prod(shape[:-2])


def _columns(node: Node) -> int:
    """Numbers of the right sides, which the result has as well."""
    return prod(sizes(node.outputs[0], "the result"))


def _lu(node: Node) -> Cost:
    return formulas.lu(*_matrices(node))


def _qr(node: Node) -> Cost:
    """R, and Q written out: all of its columns or as many as there are reflectors."""
    m, n, batch = _matrices(node)
    columns = m if node.attrs.get("full_matrices") else min(m, n)
    return formulas.qr(m, n, batch) + formulas.reflectors(m, columns, min(m, n), batch)


def _least_squares(node: Node) -> Cost:
    if not node.attrs.get("fast", True):
        raise UnknownWork("a complete orthogonal decomposition pivots by data")
    m, n, batch = _matrices(node)
    return formulas.normal_equations(m, n, _matrices(node, 1)[1], batch)


def _tridiagonal_solve(node: Node) -> Cost:
    shape = sizes(node.in_types[0], "the diagonals")
    return formulas.tridiagonal_solve(shape[-1], _matrices(node, 1)[1], prod(shape[:-2]))


_SINGLE: dict[str, Callable[[Node], Cost]] = {
    "Cholesky": lambda node: formulas.cholesky(*_matrices(node)[1:]),
    "MatrixInverse": lambda node: formulas.inverse(*_matrices(node)[1:]),
    "MatrixSolve": lambda node: _lu(node) + formulas.solve(_matrices(node)[0], _columns(node)),
    "MatrixTriangularSolve": lambda node: formulas.triangular_solve(_matrices(node)[0], _columns(node)),
    "MatrixDeterminant": _lu,
}
#: The rule of each op.
RULES: dict[str, Callable[[Node], Cost]] = {
    **_SINGLE,
    **{f"Batch{name}": rule for name, rule in _SINGLE.items()},
    "Lu": _lu,
    "LogMatrixDeterminant": _lu,
    "Qr": _qr,
    "MatrixSolveLs": _least_squares,
    "BandedTriangularSolve": lambda node: formulas.banded_solve(_matrices(node)[0], _columns(node)),
    "TridiagonalSolve": _tridiagonal_solve,
}
