"""Direct linear algebra by textbook counts: factorisations, and solving with them (docs/counting.md).

Leading orders of Golub and Van Loan, Matrix Computations, 4th edition, and of LAPACK Working Note 41 for rectangular
matrices. Blocked algorithms are products for the most part and run on the matrix units, so their FLOPs are matrix work,
whose roof is the highest; but nobody asked for these products, and libraries differ in them: they are no contractions.
Iterative ones (eigenvalues, singular values) take as many rounds as the data want: they have no formula.
"""

from __future__ import annotations

from msgspec.structs import replace

from roofline.core.cost import Cost, matrix
from roofline.core.vocabulary import LINEAR_ALGEBRA

#: The kind of all these ops, in every framework.
KIND = LINEAR_ALGEBRA
NOTE = "a textbook count of the leading order (Golub and Van Loan)"


def _counted(flops: float) -> Cost:
    return replace(matrix(float(flops)), quality="assumed", note=NOTE)


def cholesky(n: int, batch: float = 1) -> Cost:
    """A = L L^T; as much for the symmetric indefinite A = L D L^T."""
    return _counted(batch * n**3 / 3)


def lu(m: int, n: int, batch: float = 1) -> Cost:
    """P A = L U with partial pivoting; 2/3 n^3 of a square matrix, m n^2 - n^3 / 3 of a tall one."""
    k = min(m, n)
    return _counted(batch * (2.0 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3))


def triangular_solve(n: int, numbers: float) -> Cost:
    """T X = B or X T = B: each of the numbers of B takes part in n / 2 multiply-adds on average."""
    return _counted(float(n) * numbers)


def banded_solve(bands: int, numbers: float) -> Cost:
    """T X = B of a triangular T of so many diagonals: for each number of B a multiply-add per other one, a division."""
    return _counted((2.0 * bands - 1) * numbers)


def solve(n: int, numbers: float) -> Cost:
    """A X = B with the factors of A: two triangular solves."""
    return 2.0 * triangular_solve(n, numbers)


def inverse(n: int, batch: float = 1) -> Cost:
    """Cost the inverse of a general matrix, its factorisation included, without products of known zeros."""
    return _counted(batch * 2.0 * n**3)


def cholesky_inverse(n: int, batch: float = 1) -> Cost:
    """Cost the inverse of a matrix whose Cholesky factor is given."""
    return _counted(batch * 2 * n**3 / 3)


def qr(m: int, n: int, batch: float = 1) -> Cost:
    """Householder's R, and reflectors: 2 n^2 (m - n / 3) of a tall matrix."""
    k, longer = min(m, n), max(m, n)
    return _counted(batch * 2.0 * k**2 * (longer - k / 3))


def reflectors(m: int, n: int, k: int, batch: float = 1) -> Cost:
    """The first n columns of the product of k reflectors of m numbers: Q, written out."""
    return _counted(batch * (4.0 * m * n * k - 2.0 * (m + n) * k**2 + 4 * k**3 / 3))


def reflected(m: int, n: int, k: int, left: bool, batch: float = 1) -> Cost:
    """An m x n matrix times the product of k reflectors, which is not written out."""
    along = n if left else m
    return _counted(batch * (4.0 * m * n * k - 2.0 * along * k**2))


def normal_equations(m: int, n: int, columns: int, batch: float = 1) -> Cost:
    """Least squares by A^T A x = A^T b: the symmetric product, its Cholesky factor, A^T B and two triangular solves."""
    products = _counted(batch * (float(m) * n**2 + 2.0 * m * n * columns))
    return products + cholesky(n, batch) + solve(n, batch * n * columns)


def tridiagonal_solve(n: int, columns: int, batch: float = 1) -> Cost:
    """Thomas' algorithm: 3 per row for the factors, and 5 per row and column."""
    return _counted(batch * n * (3.0 + 5.0 * columns))
