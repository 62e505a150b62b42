"""vLLM's attention: one op per layer, around whichever library's kernels, and the ops of some of these.

    vllm::unified_attention_with_output(query, key, value, output, layer_name, ...)       [tokens, heads, width]
    _rocm_C::paged_attention(out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache, num_kv_heads, ...)
    _C::paged_attention_v1(out, query, key_cache, value_cache, num_kv_heads, ...)
    _C::paged_attention_v2(out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache, num_kv_heads, ...)

    _vllm_fa2_C::varlen_fwd(q, k, v, out, cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k, block_table, alibi_slopes,
        max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale, zero_tensors, is_causal, window_left, window_right, ...)
    _vllm_fa3_C::fwd(q, k, v, ..., page_table (14), ..., q_descale (20), ..., softmax_scale, is_causal, window_left,
        window_right, ...), of which later versions have one more before the scale

(vllm-project/flash-attention, csrc/flash_attn/flash_api_torch_lib.cpp and hopper/flash_api_torch_lib.cpp; vLLM's
model_executor/layers/attention, csrc/torch_bindings.cpp, csrc/rocm/torch_bindings.cpp.) The cache is no argument of the
first; the views that it makes of it show its type. How long the sequences are stands in the engine's annotation.

Layers may see a window of the last keys only, and the op does not say so: full attention would then be too much work.
Where layers with the same arguments run different kernels, they differ in it: aiter's unified attention splits the keys
of a sequence over blocks (`..._3d`) only where there is no window (aiter/ops/triton, `use_2d_kernel`), so that those
are known. All others stay unknown.
"""

from __future__ import annotations

import re
from typing import Any

from roofline.core.cost import Cost, unknown
from roofline.costs import paged_attention
from roofline.costs.calls import Tensor
from roofline.costs.context import Context
from roofline.costs.custom import Work, formula
from roofline.costs.dtypes import DTYPES
from roofline.costs.flash_calls import lower_right
from roofline.costs.paged_attention import Heads

_SPLIT = re.compile(r"kernel_unified_attention_3d|reduce_segments")
_NO_CACHE = "the cache is taken to hold the type of the keys"


@formula("vllm::unified_attention_with_output", "attention", context=True)
def unified(context: Context, q: Tensor, k: Tensor, v: Tensor, out: Tensor, *_: Any) -> Cost:
    """Cost the kernels of a layer's attention that the op launches itself."""
    if context.batch is None:
        return unknown(paged_attention.NO_BATCH)
    names = [kernel.name for kernel in context.kernels]
    if context.alike or not names or not all(map(_SPLIT.match, names)):
        return unknown("whether its layers see a window of their keys only is not in the trace")
    parts = context.batch.prefill, context.batch.decode
    cached = _cache_type(context, k)
    heads = Heads(q.shape[1], k.shape[1], q.shape[2], v.shape[2], DTYPES[cached or k.dtype][1])
    cost = paged_attention.cost(q, heads, parts, out=out)
    if cached is None and cost.quality != "unknown":
        cost += Cost(quality="assumed", note=_NO_CACHE)
    return cost


@formula("_rocm_C::paged_attention", "attention", context=True)
@formula("_C::paged_attention_v2", "attention", context=True)
def paged_in_parts(
    context: Context, out: Tensor, sums: Tensor, greatest: Tensor, parts: Tensor, q: Tensor, *options: Any
) -> Work:
    """Cost decoding with pages, in parts that are put together; options: cache of keys, of values, heads, ..."""
    return paged(context, out, q, *options)


@formula("_C::paged_attention_v1", "attention", context=True)
def paged(context: Context, out: Tensor, q: Tensor, keys: Tensor, values: Tensor, heads: Any, *_: Any) -> Work:
    """Cost decoding with pages; these kernels know no window."""
    if type(heads) is not int:
        heads = values.shape[1]  # [pages, heads, width, page]
    of_cache = Heads(q.shape[1], heads, q.shape[2], q.shape[2], DTYPES[keys.dtype][1])
    return paged_attention.decoding(context, q, of_cache, out)


@formula("_vllm_fa2_C::varlen_fwd", "attention", context=True)
def flash_2(context: Context, q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Cost:
    """Cost flash-attention 2 with pages; options: out, sums of lengths, ... (see above)."""
    if len(k.shape) != 4 or isinstance(options[4], Tensor):
        return unknown("flash-attention without pages, or with keys that are padded on the left")
    masking = options[12:15]
    return paged_attention.of_engine(context, q, k, v, lower_right(masking).left, masking[:1])


@formula("_vllm_fa3_C::fwd", "attention", context=True)
def flash_3(context: Context, q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Cost:
    """Cost flash-attention 3 with pages; options: new keys, ... (see above)."""
    if len(k.shape) != 4 or any(isinstance(options[position], Tensor) for position in (0, 1, 2, 13)):
        return unknown("flash-attention without pages, or with more keys than these")
    causal = next((place for place, value in enumerate(options) if isinstance(value, bool)), len(options))
    masking = options[causal : causal + 3]
    out = options[3] if isinstance(options[3], Tensor) else None
    return paged_attention.of_engine(context, q, k, v, lower_right(masking).left, masking[:1], out)


def _cache_type(context: Context, k: Tensor) -> str | None:
    """The type of the cache among what the op takes views of: pages of as many heads, as wide as the keys'."""
    for call in reversed(context.calls):
        for tensor in call.inputs[:1]:
            is_pages = isinstance(tensor, Tensor) and len(tensor.shape) >= 4 and tensor.shape[-1] == k.shape[2]
            if is_pages and k.shape[1] in tensor.shape[-3:-1] and tensor.dtype in DTYPES:
                return str(tensor.dtype)
    return None
