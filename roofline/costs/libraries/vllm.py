"""vLLM's small fused kernels (`_C::`, `_C_cache_ops::`, `_rocm_C::`), whose arguments are all there is to them.

Arguments as vllm/csrc/torch_bindings.cpp registers them; what they do is in vllm/csrc/layernorm_kernels.cu,
activation_kernels.cu, pos_encoding_kernels.cu, cache_kernels.cu and quantization/w8a8/fp8/common.cu (v0.6 to v0.11).
The skinny products of `_rocm_C::` (csrc/rocm/skinny_gemms.cu) take the weight [N, K] first and x [M, K] second. Paged
attention and mixtures of experts have files of their own.
"""

from __future__ import annotations

from typing import Any

from roofline.core.cost import Cost
from roofline.costs import inference_kernels as kernels
from roofline.costs.calls import Tensor, size
from roofline.costs.custom import formula
from roofline.costs.dtypes import DTYPES


@formula("_C::rms_norm", "normalisation")
def rms_norm(out: Tensor, x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost out = norm(x) * weight."""
    return kernels.rms_norm(x, weight, out)


@formula("_C::fused_add_rms_norm", "normalisation")
def fused_add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost residual += x; x = norm(residual) * weight."""
    return kernels.add_rms_norm(x, residual, weight)


@formula("_C::silu_and_mul", "pointwise")
def silu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = silu(x[..., :d]) * x[..., d:]."""
    return kernels.gated(out, x, "silu")


@formula("_C::gelu_and_mul", "pointwise")
def gelu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = gelu(x[..., :d]) * x[..., d:]."""
    return kernels.gated(out, x, "gelu")


@formula("_C::gelu_tanh_and_mul", "pointwise")
def gelu_tanh_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = gelu(x[..., :d]) * x[..., d:], with a hyperbolic tangent."""
    return kernels.gated(out, x, "gelu_tanh")


@formula("_C::rotary_embedding", "pointwise")
def rotary_embedding(positions: Tensor, query: Tensor, key: Any, head: Any, table: Tensor, *_: Any) -> Cost:
    """Cost a rotation in place of queries and keys."""
    return kernels.rotary(positions, query, key, head, table)


@formula("_C::static_scaled_fp8_quant", "pointwise")
def static_scaled_fp8_quant(out: Tensor, x: Tensor, scale: Tensor, *_: Any) -> Cost:
    """Cost a cast to fp8 with a scale that is given."""
    return kernels.cast(out, x, read=size(scale))


@formula("_C_cache_ops::reshape_and_cache_flash", "embedding")
def reshape_and_cache_flash(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor, *_: Any) -> Cost:
    """Cost writing keys and values into their pages."""
    return kernels.store(key, value, keys, values, slots)


@formula("_rocm_C::LLMM1", "contraction")
@formula("_rocm_C::wvSplitK", "contraction")
@formula("_rocm_C::wvSplitKrc", "contraction")
def skinny(weight: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost x times the weight transposed, of few rows."""
    return kernels.linear(x, weight, DTYPES[x.dtype][1])
