"""vLLM's small fused kernels (`_C::`, `_C_cache_ops::`), whose arguments are all there is to them.

Arguments as vllm/csrc/torch_bindings.cpp registers them; what they do is in vllm/csrc/layernorm_kernels.cu,
activation_kernels.cu, pos_encoding_kernels.cu, cache_kernels.cu and quantization/w8a8/fp8/common.cu (v0.6 to v0.11).
Paged attention and the mixture of experts are not here: neither the pages of the cache nor the weights are among their
arguments, so what they compute and move is not in a trace.
"""

from __future__ import annotations

from typing import Any

from roofline.core.cost import Cost
from roofline.costs.calls import Tensor
from roofline.costs.custom import formula
from roofline.costs.dtypes import DTYPES
from roofline.costs.formulas import RMS_NORM

#: x * (1 / scale), held within the range of fp8 (min, max); the cast is free.
_QUANTISED = 3.0


def size(tensor: Tensor) -> float:
    """Bytes of the distinct elements. KeyError for a type of unknown size."""
    return float(tensor.distinct * DTYPES[tensor.dtype][1])


def _rows(tensor: Tensor) -> float:
    return tensor.numel / max(1, tensor.shape[-1])


@formula("_C::rms_norm", "normalisation")
def rms_norm(out: Tensor, x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """out = x / sqrt(mean(x^2) + eps) * weight."""
    return Cost(
        vector_flops=RMS_NORM * x.numel,
        functions={"rsqrt": _rows(x)},
        bytes_read=size(x) + size(weight),
        bytes_written=size(out),
    )


@formula("_C::fused_add_rms_norm", "normalisation")
def fused_add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, *_: Any) -> Cost:
    """residual += x; x = norm(residual) * weight: both are read and written."""
    return Cost(
        vector_flops=(1.0 + RMS_NORM) * x.numel,
        functions={"rsqrt": _rows(x)},
        bytes_read=size(x) + size(residual) + size(weight),
        bytes_written=size(x) + size(residual),
    )


@formula("_C::silu_and_mul", "pointwise")
def silu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """out = silu(x[..., :d]) * x[..., d:]: two multiplications and a sigmoid per element of out."""
    return Cost(
        vector_flops=2.0 * out.numel,
        functions={"sigmoid": float(out.numel)},
        bytes_read=size(x),
        bytes_written=size(out),
    )


@formula("_C::rotary_embedding", "pointwise")
def rotary_embedding(positions: Tensor, query: Tensor, key: Any, head: Any, table: Tensor, *_: Any) -> Cost:
    """Rotates `table.shape[1]` numbers of each head of `head` numbers, in place; 3 FLOP each.

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


@formula("_C::static_scaled_fp8_quant", "pointwise")
def static_scaled_fp8_quant(out: Tensor, x: Tensor, scale: Tensor, *_: Any) -> Cost:
    """A cast to fp8 with a scale."""
    return Cost(vector_flops=_QUANTISED * x.numel, bytes_read=size(x) + size(scale), bytes_written=size(out))


@formula("_C_cache_ops::reshape_and_cache_flash", "embedding")
def reshape_and_cache_flash(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor, *_: Any) -> Cost:
    """Writes the keys and values of each slot's token into their pages; scaled where the pages are of one byte."""
    share = slots.numel / max(1, key.shape[0])  # padded tokens have no slot
    moved = [share * tensor.numel for tensor in (key, value)]
    pages = [DTYPES[tensor.dtype][1] for tensor in (keys, values)]
    return Cost(
        vector_flops=sum(_QUANTISED * n for n, width in zip(moved, pages, strict=True) if width == 1),
        bytes_read=share * (size(key) + size(value)) + size(slots),
        bytes_written=sum(n * width for n, width in zip(moved, pages, strict=True)),
    )
