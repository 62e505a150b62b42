"""Direct linear algebra in HLO: its own instructions, and the calls of LAPACK, cuSOLVER and cuBLAS in their place.

Calls are known by their routine: `lapack_spotrf_ffi`, `cusolver_potrf_ffi`, `hipsolver_potrf_ffi` and
`__cusolver$cholesky` are one. Matrices are the last two dimensions, whatever their layout. Eigenvalues and singular
values have no rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from roofline.core.cost import Cost
from roofline.costs import linear_algebra as formulas
from roofline.xla.hlo.module import Instruction, Shape

_ROUTINE = re.compile(r"lapack_[sdcz](\w+)_ffi|(?:cu|hip)solver_(\w+)_ffi|(?:cu|hip)blas_(\w+?)(?:_batched)?_ffi")
_OF_XLA = {"__cusolver$cholesky": "potrf", "__cublas$triangularSolve": "trsm"}
#: TensorFlow's ops that factorise, solve and look for eigenvalues: XLA, or what hands it the graph, writes them out.
_WRITTEN_OUT = re.compile(
    r"(Batch)?(Matrix(Inverse|Solve|SolveLs|TriangularSolve|SquareRoot|Logarithm)|Cholesky|SelfAdjointEig(V2)?|Svd)|"
    r"Eig|Qr|Lu|(Log)?MatrixDeterminant|TridiagonalSolve"
)
#: Of complex matrices LAPACK calls some otherwise.
_UNITARY = {"ungqr": "orgqr", "unmqr": "ormqr"}
#: Eigenvalues, singular values and Schur forms, which take rounds until they are near enough.
_ITERATIVE = frozenset("syevd heevd syevj syrdb geev gees gesvd gesvdj gesvdp gesdd".split())
_OPCODES = {"cholesky": "potrf", "triangular-solve": "trsm"}


def routine(instruction: Instruction) -> str:
    """LAPACK's name of what it does, without its type; "" for what is none of these."""
    name = _OPCODES.get(instruction.opcode, "")
    if instruction.opcode == "custom-call":
        name = _called(instruction.custom_call_target)
    return name if name in _RULES else ""


def is_part(instruction: Instruction) -> bool:
    """Tell whether an instruction is linear algebra, or TensorFlow writes such an op out with it."""
    return bool(routine(instruction) or _WRITTEN_OUT.fullmatch(instruction.op_type))


def _called(target: str) -> str:
    named = _ROUTINE.fullmatch(target)
    name = next(filter(None, named.groups()), "") if named else ""
    return _OF_XLA.get(target) or _UNITARY.get(name, name)


def takes_rounds(target: str) -> bool:
    """Tell whether a custom call repeats something until it is near enough, so that its FLOPs hang on its numbers."""
    return _called(target) in _ITERATIVE


def work(instruction: Instruction) -> Cost:
    """The work of an instruction that has a `routine`. IndexError for operands that are no matrices."""
    return _RULES[routine(instruction)]([operand.shape for operand in instruction.operands])


def _sizes(x: Shape) -> tuple[int, int, int]:
    return x.dims[-2], x.dims[-1], prod(x.dims[:-2])


def _orgqr(shapes: Sequence[Shape]) -> Cost:
    m, n, batch = _sizes(shapes[0])
    return formulas.reflectors(m, n, shapes[1].dims[-1], batch)


def _ormqr(shapes: Sequence[Shape]) -> Cost:
    """Reflectors are as long as what they are multiplied with: the columns of the matrix from the left, or its rows."""
    m, n, batch = _sizes(shapes[2])
    return formulas.reflected(m, n, shapes[1].dims[-1], shapes[0].dims[-2] == m, batch)


_RULES: dict[str, Callable[[Sequence[Shape]], Cost]] = {
    "potrf": lambda shapes: formulas.cholesky(*_sizes(shapes[0])[1:]),
    "getrf": lambda shapes: formulas.lu(*_sizes(shapes[0])),
    "trsm": lambda shapes: formulas.triangular_solve(shapes[0].dims[-1], shapes[1].elements),
    "geqrf": lambda shapes: formulas.qr(*_sizes(shapes[0])),
    "orgqr": _orgqr,
    "ormqr": _ormqr,
}
