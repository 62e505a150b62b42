"""Direct linear algebra among aten ops: factorisations and solving (`roofline.costs.linear_algebra`)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from roofline.core.cost import Cost
from roofline.costs import linear_algebra as formulas
from roofline.pytorch.aten.contractions import by_name


def _sizes(x: Any) -> tuple[int, int, int]:
    """(rows, columns, how many matrices)."""
    return x.shape[-2], x.shape[-1], prod(x.shape[:-2])


def _lu(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    return formulas.lu(*_sizes(args[0]))


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, list | tuple) else out


def _triangular_solve(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named, result = by_name(func, args, kwargs), _first(out)
    matrix = named["A"] if "A" in named else named["self"]
    return formulas.triangular_solve(matrix.shape[-1], result.numel())


def _solve_with_factors(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    result = _first(out)
    named = by_name(func, args, kwargs)
    factors = next(named[name] for name in ("LU", "LD", "A", "input2") if name in named)
    return formulas.solve(factors.shape[-1], result.numel())


def _solve(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    return _lu(func, args, kwargs, out) + formulas.solve(args[0].shape[-1], _first(out).numel())


def _qr(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """mode "r" forms no Q; "complete" all of its columns."""
    m, n, batch = _sizes(args[0])
    mode, cost = by_name(func, args, kwargs).get("mode", "reduced"), formulas.qr(m, n, batch)
    if mode == "r":
        return cost
    return cost + formulas.reflectors(m, m if mode == "complete" else min(m, n), min(m, n), batch)


def _reflectors(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """geqrf keeps R and the reflectors in one matrix."""
    return formulas.qr(*_sizes(args[0]))


def _product_of_reflectors(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    m, n, batch = _sizes(args[0])
    return formulas.reflectors(m, n, args[1].shape[-1], batch)


def _times_reflectors(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    m, n, batch = _sizes(args[2])
    return formulas.reflected(m, n, args[1].shape[-1], bool(by_name(func, args, kwargs).get("left", True)), batch)


#: The rule of each op, as `flops` calls them.
RULES: dict[str, Callable[[Any, Any, Any, Any], Cost]] = {
    **dict.fromkeys(
        ("linalg_cholesky_ex", "cholesky", "linalg_ldl_factor_ex"),
        lambda func, args, kwargs, out: formulas.cholesky(*_sizes(args[0])[1:]),
    ),
    "cholesky_inverse": lambda func, args, kwargs, out: formulas.cholesky_inverse(*_sizes(args[0])[1:]),
    "linalg_inv_ex": lambda func, args, kwargs, out: formulas.inverse(*_sizes(args[0])[1:]),
    **dict.fromkeys(("linalg_lu", "linalg_lu_factor_ex", "_linalg_det", "_linalg_slogdet"), _lu),
    **dict.fromkeys(("linalg_solve_triangular", "triangular_solve"), _triangular_solve),
    **dict.fromkeys(
        ("linalg_lu_solve", "linalg_ldl_solve", "_cholesky_solve_helper", "cholesky_solve"), _solve_with_factors
    ),
    "_linalg_solve_ex": _solve,
    "linalg_qr": _qr,
    "geqrf": _reflectors,
    "linalg_householder_product": _product_of_reflectors,
    "ormqr": _times_reflectors,
}
