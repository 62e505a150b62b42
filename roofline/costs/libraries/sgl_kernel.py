"""SGLang's kernels (`sgl_kernel::`, `sglang::`).

Arguments as sgl-kernel/csrc/common_extension.cc and common_extension_rocm.cc register them, and
python/sglang/jit_kernel for `store_cache` (2025 to 2026).
"""

from __future__ import annotations

from typing import Any

from roofline.core.cost import Cost
from roofline.costs import inference_kernels as kernels
from roofline.costs.calls import Tensor, size
from roofline.costs.custom import formula
from roofline.costs.dtypes import DTYPES


@formula("sgl_kernel::rmsnorm", "normalisation")
def rmsnorm(out: Tensor, x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost out = norm(x) * weight."""
    return kernels.rms_norm(x, weight, out)


@formula("sgl_kernel::gemma_rmsnorm", "normalisation")
def gemma_rmsnorm(out: Tensor, x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost out = norm(x) * (1 + weight)."""
    return kernels.rms_norm(x, weight, out) + Cost(vector_flops=float(x.numel))


@formula("sgl_kernel::fused_add_rmsnorm", "normalisation")
def fused_add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost residual += x; x = norm(residual) * weight."""
    return kernels.add_rms_norm(x, residual, weight)


@formula("sgl_kernel::gemma_fused_add_rmsnorm", "normalisation")
def gemma_fused_add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost residual += x; x = norm(residual) * (1 + weight)."""
    return kernels.add_rms_norm(x, residual, weight) + Cost(vector_flops=float(x.numel))


@formula("sgl_kernel::silu_and_mul", "pointwise")
def silu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = silu(x[..., :d]) * x[..., d:]."""
    return kernels.gated(out, x, "silu")


@formula("sgl_kernel::gelu_and_mul", "pointwise")
def gelu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = gelu(x[..., :d]) * x[..., d:]."""
    return kernels.gated(out, x, "gelu")


@formula("sgl_kernel::gelu_tanh_and_mul", "pointwise")
def gelu_tanh_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = gelu(x[..., :d]) * x[..., d:], with a hyperbolic tangent."""
    return kernels.gated(out, x, "gelu_tanh")


@formula("sgl_kernel::rotary_embedding", "pointwise")
def rotary_embedding(positions: Tensor, query: Tensor, key: Any, head: Any, table: Tensor, *_: Any) -> Cost:
    """Cost a rotation in place of queries and keys."""
    return kernels.rotary(positions, query, key, head, table)


@formula("sglang::store_cache", "embedding")
def store_cache(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor, *_: Any) -> Cost:
    """Cost writing keys and values into their places."""
    return kernels.store(key, value, keys, values, slots)


@formula("sgl_kernel::sgl_per_token_quant_fp8", "pointwise")
@formula("sgl_kernel::sgl_per_token_group_quant_fp8", "pointwise")
def per_token_quant_fp8(x: Tensor, out: Tensor, scales: Tensor, *_: Any) -> Cost:
    """Cost a cast to fp8 with a scale per row, or per group of a row, found of the largest element."""
    return kernels.cast(out, x, scales=scales)


@formula("sgl_kernel::fp8_scaled_mm", "contraction")
@formula("sgl_kernel::int8_scaled_mm", "contraction")
def scaled_mm(
    a: Tensor, b: Tensor, scales_a: Tensor, scales_b: Tensor, out_dtype: Any = None, bias: Any = None
) -> Cost:
    """Cost a [M, K] times b [K, N], scaled, to a result of two bytes per number, as fp16 and bf16 alone are allowed."""
    weight = Tensor(b.shape[::-1], None, b.dtype, device=b.device)
    scales = size(scales_a) + size(scales_b) + (size(bias) if isinstance(bias, Tensor) else 0.0)
    scaled = 2.0 * a.shape[0] * b.shape[1]
    return kernels.linear(a, weight, DTYPES["c10::Half"][1], scales) + Cost(vector_flops=scaled)
