"""AMD's aiter: norms, gates, matmuls and attention of inference on ROCm.

Arguments as aiter/ops/*.py declares them (ROCm/aiter, 2025 to 2026):

    rmsnorm(out, x, weight, eps)
    add_rmsnorm, rmsnorm2d_fwd_with_add_ck(out, x, residual, residual_out, weight, eps, ...)
    rms_norm, rmsnorm2d_fwd_ck(x, weight, eps, ...) -> out
    gemm_a16w16, gemm_a16w16_asm(x [M, K], weight [N, K], ...)
    gemm_a8w8_ck, gemm_a8w8_blockscale_ck, ...(x [M, K], weight [N, K], x_scale, w_scale, out [M, N], ...)
    mha_fwd, fmha_v3_fwd(q, k, v, dropout_p, softmax_scale, is_causal, window_left, window_right, return_lse, ...)
    mha_varlen_fwd, fmha_v3_varlen_fwd(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, min_seqlen_q,
        dropout_p, softmax_scale, logits_soft_cap, zero_tensors, is_causal, window_left, window_right, ...)
    mha_batch_prefill(q, k, v, cu_seqlens_q, kv_indptr, kv_page_indices, max_seqlen_q, max_seqlen_k, dropout_p,
        softmax_scale, logits_soft_cap, zero_tensors, is_causal, window_left, window_right, ...)
    paged_attention_ragged(out, workspace, query, key_cache, value_cache, scale, kv_indptr, kv_page_indices,
        kv_last_page_lens, block_size, max_num_partitions, alibi_slopes, kv_cache_dtype, kv_cache_layout, ...)

q is [batch, length, heads, width] or, packed, [sum of lengths, heads, width]; a causal mask ends at the lower right
corner, as flash-attention's. k and v of `mha_batch_prefill` are a pool: pages of one token [tokens, heads, width], or
[pages, page, heads, width].
"""

from __future__ import annotations

from typing import Any

from roofline.core.batch import Sequences
from roofline.core.cost import Cost, unknown
from roofline.costs import inference_kernels as kernels
from roofline.costs import kernel_names, paged_attention
from roofline.costs.attention_pairs import Lengths, forward
from roofline.costs.calls import Tensor, size
from roofline.costs.context import Context
from roofline.costs.custom import Work, formula
from roofline.costs.dtypes import DTYPES
from roofline.costs.flash_calls import LSE, is_table, lower_right, moved, out_size, packed_lengths
from roofline.costs.paged_attention import Heads

_GROUP_NORM = 8.0  # FLOP per element, as torch's own


@formula("aiter::rmsnorm", "normalisation")
@formula("aiter::rms_norm_cu", "normalisation")
def rmsnorm(out: Tensor, x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost out = norm(x) * weight."""
    return kernels.rms_norm(x, weight, out)


@formula("aiter::rms_norm", "normalisation")
@formula("aiter::rmsnorm2d_fwd", "normalisation")
@formula("aiter::rmsnorm2d_fwd_ck", "normalisation")
def rmsnorm_returned(x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost norm(x) * weight, in memory of its own."""
    return kernels.rms_norm(x, weight)


@formula("aiter::add_rmsnorm", "normalisation")
@formula("aiter::rmsnorm2d_fwd_with_add", "normalisation")
@formula("aiter::rmsnorm2d_fwd_with_add_ck", "normalisation")
def add_rmsnorm(out: Tensor, x: Tensor, residual: Tensor, residual_out: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost residual_out = x + residual; out = norm(residual_out) * weight."""
    return kernels.add_rms_norm(x, residual, weight, out)


@formula("aiter::_groupnorm_run", "normalisation")
def groupnorm(*arguments: Any) -> Cost:
    """Cost a group norm: (x, groups, weight, bias, eps) -> out, later (out, workspace, x, groups, ...)."""
    x, groups, weight, bias = arguments[0:4] if type(arguments[1]) is int else arguments[2:6]
    return Cost(
        vector_flops=_GROUP_NORM * x.numel,
        functions={"rsqrt": float(x.shape[0] * groups)},
        bytes_read=size(x) + size(weight) + size(bias),
        bytes_written=size(x),
    )


@formula("aiter::silu_and_mul", "pointwise")
def silu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = silu(x[..., :d]) * x[..., d:]."""
    return kernels.gated(out, x, "silu")


@formula("aiter::gelu_and_mul", "pointwise")
def gelu_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = gelu(x[..., :d]) * x[..., d:]."""
    return kernels.gated(out, x, "gelu")


@formula("aiter::gelu_tanh_and_mul", "pointwise")
def gelu_tanh_and_mul(out: Tensor, x: Tensor, *_: Any) -> Cost:
    """Cost out = gelu(x[..., :d]) * x[..., d:], with a hyperbolic tangent."""
    return kernels.gated(out, x, "gelu_tanh")


@formula("aiter::reshape_and_cache_flash", "embedding")
def reshape_and_cache_flash(key: Tensor, value: Tensor, keys: Tensor, values: Tensor, slots: Tensor, *_: Any) -> Cost:
    """Cost writing keys and values into their pages."""
    return kernels.store(key, value, keys, values, slots)


@formula("aiter::gemm_a16w16", "contraction", context=True)
@formula("aiter::gemm_a16w16_asm", "contraction", context=True)
@formula("aiter::_gemm_a16w16_asm", "contraction", context=True)
@formula("aiter::gemm_a16w16_atomic_", "contraction", context=True)
def gemm_a16w16(context: Context, x: Tensor, weight: Tensor, *_: Any) -> Cost:
    """Cost a product whose kernel the op launches itself; others it hands to an op of torch's inside."""
    if not any(kernel_names.classify(kernel.name) == "contraction" for kernel in context.kernels):
        return unknown("kernels that are not known to be a product")
    return kernels.linear(x, weight, DTYPES[x.dtype][1])


@formula("aiter::gemm_a8w8_ck", "contraction")
@formula("aiter::gemm_a8w8_bpreshuffle_ck", "contraction")
@formula("aiter::gemm_a8w8_bpreshuffle_cktile", "contraction")
@formula("aiter::gemm_a8w8_blockscale_ck", "contraction")
@formula("aiter::gemm_a8w8_blockscale_cktile", "contraction")
@formula("aiter::gemm_a8w8_blockscale_bpreshuffle_ck", "contraction")
@formula("aiter::gemm_a8w8_blockscale_bpreshuffle_cktile", "contraction")
def gemm_a8w8(x: Tensor, weight: Tensor, x_scale: Tensor, w_scale: Tensor, out: Tensor, *_: Any) -> Work:
    """Cost a product of numbers of one byte with their scales; to scale each result takes two products."""
    scales = size(x_scale) + size(w_scale)
    product = kernels.linear(x, weight, DTYPES[out.dtype][1], scales)
    return product + Cost(vector_flops=2.0 * out.numel), DTYPES[x.dtype][0]


@formula("aiter::fmha_v3_fwd", "attention")
@formula("aiter::mha_fwd", "attention")
@formula("aiter::_flash_attn_forward", "attention")
def fixed(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Cost:
    """Cost attention of equal lengths; options: dropout, scale, causal, window left and right, return lse, ..."""
    batch, queries, heads, width = q.shape
    lengths = Lengths(batch, queries, k.shape[1])
    cost = forward(lengths, heads, width, v.shape[-1], lower_right(options[2:5]))
    returns_lse = len(options) > 5 and options[5] is True  # later versions have the size of a sink before it
    lse = LSE * batch * queries * heads if returns_lse else 0.0
    return moved(cost, (q, k, v), out_size(q, v) + lse, options[2:3])


@formula("aiter::fmha_v3_varlen_fwd", "attention", context=True)
@formula("aiter::mha_varlen_fwd", "attention", context=True)
def packed(context: Context, q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Any, *options: Any) -> Cost:
    """Cost attention of packed lengths; options: longest queries and keys, shortest queries, dropout, ..."""
    mask = lower_right(options[7:10])
    if len(k.shape) != 3 or any(map(is_table, options)):
        return paged_attention.of_engine(context, q, k, v, mask.left, options[7:8])
    _, heads, width = q.shape
    cost = forward(packed_lengths(q, k, cu_q, options[:2]), heads, width, v.shape[-1], mask)
    return moved(cost, (q, k, v, cu_q), out_size(q, v), options[7:8])


@formula("aiter::mha_batch_prefill", "attention", context=True)
def batch_prefill(
    context: Context, q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, kv_sums: Tensor, kv_pages: Tensor, *options: Any
) -> Cost:
    """Cost attention to a pool of keys; options: longest queries and keys, dropout, ... (see above).

    Where the sequences have as many queries together as if each had the most, and the most keys are as many, each has
    as many keys: its own queries' keys are among them.
    """
    number, longest, longest_keys = cu_q.numel - 1, _whole(options[0]), _whole(options[1])
    mask = lower_right(options[6:9])
    if longest is not None and q.shape[0] == number * longest and longest == longest_keys and options[6] is True:
        each = Sequences(number, q.shape[0], q.shape[0], number * longest**2, number * longest**2)
        return paged_attention.cost(q, paged_attention.heads(q, k, v), (each,), mask.left)
    return paged_attention.of_engine(context, q, k, v, mask.left, options[6:7])


@formula("aiter::paged_attention_ragged", "attention", context=True)
@formula("sglang_profiler::attention_paged_attention_ragged", "attention", context=True)  # as TraceLens' tool wraps it
def paged_ragged(
    context: Context, out: Tensor, workspace: Tensor, q: Tensor, k: Tensor, v: Tensor, *options: Any
) -> Cost:
    """Cost decoding with pages; options: scale, page sums, pages, lengths of last pages, block size, partitions, ..."""
    layout = options[8] if len(options) > 8 else None
    heads = Heads(q.shape[1], k.shape[1 if layout == "HND" else -2], q.shape[2], v.shape[-1], DTYPES[k.dtype][1])
    return paged_attention.decoding(context, q, heads, out)


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None
