"""Textbook counts against the loops of the algorithms, whose lower orders they leave out."""

from __future__ import annotations

import pytest

from roofline.core.cost import Cost
from roofline.costs import linear_algebra

SIZE = 200
#: What lower orders add to a matrix of that size, at most.
NEAR = 0.02


def cholesky(n):
    """Column by column: a root, divisions below it, and a multiply-add for each place of the triangle to its right."""
    return sum(1 + (n - j - 1) + 2 * (n - j - 1) * (n - j) // 2 for j in range(n))


def lu(m, n):
    """Step by step: divisions below the pivot, and a multiply-add for each place below and to the right."""
    return sum((m - k - 1) + 2 * (m - k - 1) * (n - k - 1) for k in range(min(m, n)))


def substitution(n, columns):
    """Row by row: a multiply-add with what is known already, and a division."""
    return columns * sum(2 * i + 1 for i in range(n))


def reflections(m, n):
    """Each reflector is put together of its column and applied to the columns to its right: 4 per number of these."""
    return sum(3 * (m - k) + 4 * (m - k) * (n - k - 1) for k in range(min(m, n)))


def applied(m, n, k):
    """k reflectors, of which the i-th has m - i numbers, applied to n columns."""
    return sum(4 * (m - i) * n for i in range(k))


def written_out(m, n, k):
    """The last reflector changes n - k + 1 columns of the identity, the one before it one more."""
    return sum(4 * (m - i) * (n - i) for i in range(k))


@pytest.mark.parametrize(
    ("cost", "loops"),
    [
        (linear_algebra.cholesky(SIZE), cholesky(SIZE)),
        (linear_algebra.lu(SIZE, SIZE), lu(SIZE, SIZE)),
        (linear_algebra.lu(3 * SIZE, SIZE), lu(3 * SIZE, SIZE)),
        (linear_algebra.lu(SIZE, 2 * SIZE), lu(SIZE, 2 * SIZE)),
        (linear_algebra.triangular_solve(SIZE, SIZE * 7), substitution(SIZE, 7)),
        (linear_algebra.solve(SIZE, SIZE * 7), 2 * substitution(SIZE, 7)),
        (linear_algebra.qr(SIZE, SIZE), reflections(SIZE, SIZE)),
        (linear_algebra.qr(3 * SIZE, SIZE), reflections(3 * SIZE, SIZE)),
        (linear_algebra.qr(SIZE, 2 * SIZE), reflections(SIZE, 2 * SIZE)),
        (linear_algebra.reflectors(3 * SIZE, SIZE, SIZE), written_out(3 * SIZE, SIZE, SIZE)),
        (linear_algebra.reflectors(2 * SIZE, 2 * SIZE, SIZE), written_out(2 * SIZE, 2 * SIZE, SIZE)),
        (linear_algebra.reflected(2 * SIZE, 50, SIZE, left=True), applied(2 * SIZE, 50, SIZE)),
        # From the right it is the transposed matrix from the left.
        (linear_algebra.reflected(50, 2 * SIZE, SIZE, left=False), applied(2 * SIZE, 50, SIZE)),
    ],
)
def test_counts_are_those_of_the_loops(cost, loops):
    assert cost.flops == pytest.approx(loops, rel=NEAR)
    assert (cost.model_flops, cost.useful_flops, cost.quality) == (cost.flops, cost.flops, "assumed")
    assert (cost.vector_flops, cost.functions) == (0, {})


def test_closed_forms():
    n = 30.0
    assert linear_algebra.cholesky(30).flops == 9000
    assert linear_algebra.lu(30, 30).flops == pytest.approx(2 * n**3 / 3)
    assert linear_algebra.lu(60, 30).flops == pytest.approx(60 * n**2 - n**3 / 3)
    assert linear_algebra.triangular_solve(30, 30 * 4).flops == 4 * n**2
    assert linear_algebra.inverse(30, batch=2).flops == 2 * 2 * n**3
    assert linear_algebra.cholesky_inverse(30).flops == 18000
    assert linear_algebra.qr(60, 30).flops == pytest.approx(2 * n**2 * (60 - 10))
    assert linear_algebra.reflectors(30, 30, 30).flops == pytest.approx(4 * n**3 / 3)


def test_several_matrices_are_as_much_each():
    one, many = linear_algebra.lu(20, 10), linear_algebra.lu(20, 10, batch=6)
    assert many.flops == pytest.approx(6 * one.flops)
    assert one != Cost()
