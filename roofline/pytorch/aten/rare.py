"""Ops that few models use, each counted on its definition (`roofline.costs.rare`)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from roofline.core.cost import Cost, matrix
from roofline.costs import formulas, rare
from roofline.pytorch.aten.contractions import by_name
from roofline.pytorch.aten.schema import Unresolved
from roofline.pytorch.aten.tables import base


def _scan_of_exponentials(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    x = args[0]
    lines = x.numel() // max(1, x.shape[args[1]] if x.dim() else 1)
    return rare.log_add_exp(x.numel() - lines)


def _distances(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    return rare.distances(out.numel(), args[0].shape[-1], by_name(func, args, kwargs).get("p", 2.0))


def _distances_by_product(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """|a|^2 - 2 a b + |b|^2 in one product, to whose factors two columns more are given: these nobody asked for."""
    rows_of_a, rows_of_b = args[:2]
    rows, width = (rows_of_a.numel() + rows_of_b.numel()) // max(1, rows_of_a.shape[-1]), rows_of_a.shape[-1]
    product = formulas.matmul(1, out.numel(), width)
    # Squares and their sums; the factor -2; no less than 0, and the root.
    squares = rows * (2.0 * width - 1) + rows_of_a.numel() + out.numel()
    executed = formulas.matmul(1, out.numel(), width + 2).flops
    return matrix(product.flops or 0.0, executed) + Cost(vector_flops=squares, functions={"sqrt": float(out.numel())})


def _distances_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named = by_name(func, args, kwargs)
    rows = 2 if base(func._schema.name).startswith("_pdist") else 1
    return rare.distances_backward(named["grad"].numel(), out.shape[-1], named["p"], rows)


def _segments_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named = by_name(func, args, kwargs)
    return rare.segments_backward(out.numel(), named["grad"].numel(), named["reduce"])


def _noisy_relu(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """A slope for each number, drawn where it trains."""
    scaled = Cost(vector_flops=float(out.numel()))
    return scaled + formulas.random(out.numel()) if by_name(func, args, kwargs).get("training") else scaled


def _margin_backward(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    named = by_name(func, args, kwargs)
    return rare.margin_backward(named["self"].numel(), int(named["p"]), named.get("weight") is not None)


def _ctc(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Lengths that were given as tensors are data."""
    named = by_name(func, args, kwargs)
    frames, labels = named["input_lengths"], named["target_lengths"]
    if not isinstance(frames, list | tuple) or not isinstance(labels, list | tuple):
        raise Unresolved("the lengths of its sequences are data")
    cells = float(sum(max(0, many - 1) * (2 * label + 1) for many, label in zip(frames, labels, strict=True)))
    if base(func._schema.name) == "_ctc_loss":
        return rare.ctc(cells)
    return rare.ctc_backward(cells, float(sum(frames) * named["log_probs"].shape[-1]))


def _fourier(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """The longer side of a real transform has the points: of the other half are left out, as they follow."""
    name, dims = base(func._schema.name), args[1]
    real_side = out if name == "_fft_c2r" else args[0]
    points = prod(real_side.shape[dim] for dim in dims)
    return rare.fft(points, real_side.numel() / max(1, points), real=name != "_fft_c2c")


def _projections(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Queries, keys and values get their bias, and queries are scaled."""
    return Cost(vector_flops=float(args[0].numel() + args[0].numel() // 3))


def _masked_softmax(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """As without a mask: subtract the largest, exp, divide by the sum."""
    rows = out.numel() // max(1, out.shape[-1])
    return 2 * formulas.reduction(out.numel(), rows) + Cost(
        vector_flops=2.0 * out.numel(), functions={"exp": float(out.numel())}
    )


def _shortened(func: Any, args: Any, kwargs: Any, out: Any) -> Cost:
    """Rows of a table that are longer than allowed are divided by their length: as if all that are looked up were."""
    table, indices, _, p = args
    width = table.numel() // max(1, table.shape[0])
    rows = min(indices.numel(), table.shape[0])
    lengths = rare.norms(rows, width, p)
    # The length plus a small number, the limit over that, and each number times this.
    scaled = Cost(vector_flops=rows * (2.0 + width), quality="assumed", note="all rows differ and are too long")
    return lengths + scaled


#: The rule of each op, as `flops` calls them.
RULES: dict[str, Callable[[Any, Any, Any, Any], Cost]] = {
    **dict.fromkeys(("logcumsumexp", "_logcumsumexp"), _scan_of_exponentials),
    "_transform_bias_rescale_qkv": _projections,
    "_masked_softmax": _masked_softmax,
    "embedding_renorm": _shortened,
    "hypot": lambda func, args, kwargs, out: rare.hypotenuse(out.numel()),
    "gcd": lambda func, args, kwargs, out: Cost(functions={"gcd": float(out.numel())}),
    **dict.fromkeys(("_pdist_forward", "_cdist_forward"), _distances),
    "_euclidean_dist": _distances_by_product,
    **dict.fromkeys(("_pdist_backward", "_cdist_backward"), _distances_backward),
    "segment_reduce": lambda func, args, kwargs, out: formulas.reduction(
        args[0].numel(), out.numel(), mean=args[1] == "mean"
    ),
    "_segment_reduce_backward": _segments_backward,
    **dict.fromkeys(("rrelu_with_noise", "rrelu_with_noise_functional"), _noisy_relu),
    "multi_margin_loss_backward": _margin_backward,
    **dict.fromkeys(("_ctc_loss", "_ctc_loss_backward"), _ctc),
    **dict.fromkeys(("_fft_c2c", "_fft_r2c", "_fft_c2r"), _fourier),
}
