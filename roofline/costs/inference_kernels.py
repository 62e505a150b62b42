"""Cost the fused kernels that inference libraries have in common: norms, gates, rotations, casts, stores into a cache.

Each library has its own names and its own order of arguments (roofline/costs/libraries/); what the kernels read, write
and compute is the same. Bytes are compulsory: each tensor once.
"""

from __future__ import annotations

from typing import Any

from roofline.core.cost import Cost, matrix
from roofline.costs.calls import Tensor, size
from roofline.costs.dtypes import DTYPES
from roofline.costs.formulas import RMS_NORM

#: x * (1 / scale), held within the range of a narrow type (min, max); the cast is free.
_QUANTISED = 3.0
_LARGEST = 2.0  # FLOP per element: its absolute value, and the larger of two
#: FLOP and functions per element of an activation, beside the product with the other half.
_ACTIVATIONS: dict[str, tuple[float, str]] = {
    "silu": (1.0, "sigmoid"),
    "gelu": (4.0, "erf"),
    "gelu_tanh": (8.0, "tanh"),
}


def rms_norm(x: Tensor, weight: Tensor, out: Tensor | None = None) -> Cost:
    """out = x / sqrt(mean(x^2) + eps) * weight, along the last dimension. out: like x where None."""
    rows = x.numel / max(1, x.shape[-1])
    return Cost(
        vector_flops=RMS_NORM * x.numel + rows,
        functions={"rsqrt": rows},
        bytes_read=size(x) + size(weight),
        bytes_written=size(x if out is None else out),
    )


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, out: Tensor | None = None) -> Cost:
    """residual += x; out = norm(residual) * weight: both are read and written. out: in the place of x where None."""
    cost = rms_norm(x, weight, out)
    added = Cost(vector_flops=float(x.numel), bytes_read=size(residual), bytes_written=size(residual))
    return cost + added


def gated(out: Tensor, x: Tensor, activation: str) -> Cost:
    """out = activation(x[..., :d]) * x[..., d:]. activation: a key of `_ACTIVATIONS`."""
    flops, function = _ACTIVATIONS[activation]
    return Cost(
        vector_flops=(1.0 + flops) * out.numel,
        functions={function: float(out.numel)},
        bytes_read=size(x),
        bytes_written=size(out),
    )


def rotary(positions: Tensor, query: Tensor, key: Any, head: Any, table: Tensor) -> Cost:
    """Rotate `table.shape[1]` numbers of each head of `head` numbers, in place; 3 FLOP each.

    Where the size of a head was not recorded all of it is taken to be rotated, as in most models.
    """
    turned = table.shape[1]
    share = min(1.0, turned / head) if type(head) is int and head > 0 else 1.0
    many = [query, key] if isinstance(key, Tensor) else [query]
    moved = share * sum(size(tensor) for tensor in many)
    rows = min(positions.numel, table.shape[0])
    cost = Cost(
        vector_flops=3.0 * share * sum(tensor.numel for tensor in many),
        bytes_read=moved + size(positions) + rows * turned * DTYPES[table.dtype][1],
        bytes_written=moved,
    )
    return cost if type(head) is int else cost + Cost(quality="assumed", note="whole heads rotated")


def store(keys: Tensor, values: Tensor, key_pages: Tensor, value_pages: Tensor, slots: Tensor) -> Cost:
    """Write the keys and values of each slot's token into their pages; scaled where the pages are of one byte."""
    share = slots.numel / max(1, keys.shape[0])  # padded tokens have no slot
    moved = [share * tensor.numel for tensor in (keys, values)]
    pages = [DTYPES[tensor.dtype][1] for tensor in (key_pages, value_pages)]
    return Cost(
        vector_flops=sum(_QUANTISED * n for n, width in zip(moved, pages, strict=True) if width == 1),
        bytes_read=share * (size(keys) + size(values)) + size(slots),
        bytes_written=sum(n * width for n, width in zip(moved, pages, strict=True)),
    )


def cast(out: Tensor, x: Tensor, read: float = 0.0, scales: Tensor | None = None) -> Cost:
    """Cast x to a narrow type. read: of given scales [byte]; scales: written, found of the largest elements."""
    searched = _LARGEST * x.numel if scales is not None else 0.0
    return Cost(
        vector_flops=_QUANTISED * x.numel + searched,
        bytes_read=size(x) + read,
        bytes_written=size(out) + (size(scales) if scales is not None else 0.0),
    )


def linear(x: Tensor, weight: Tensor, out_width: float, scales: float = 0.0) -> Cost:
    """x [M, K] times weight [N, K] transposed. out_width: bytes of an element of the result. scales: their bytes."""
    rows, inner = x.numel // max(1, x.shape[-1]), x.shape[-1]
    columns = weight.shape[0]
    if weight.shape[1] != inner:
        raise ValueError(f"{x.shape} times {weight.shape} transposed")
    moved = Cost(bytes_read=size(x) + size(weight) + scales, bytes_written=rows * columns * out_width)
    return matrix(2.0 * rows * inner * columns) + moved
