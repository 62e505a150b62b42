"""flash-attention's own ops (flash_attn 2.x), fixed and variable lengths, forward and backward.

Arguments as flash_attn/flash_attn_interface.py registers them (Dao-AILab/flash-attention, v2.1 to v2.8):

    _flash_attn_forward(q, k, v, dropout_p, softmax_scale, causal, window_size_left, window_size_right, softcap, ...)
    _flash_attn_varlen_forward(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p,
                               softmax_scale, causal, window_size_left, window_size_right, softcap, ...)
    _flash_attn_backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, dropout_p, softmax_scale, causal, window ...)
    _flash_attn_varlen_backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                                max_seqlen_k, dropout_p, softmax_scale, causal, window ...)

q is [batch, length, heads, width] or, packed, [sum of lengths, heads, width]. A causal mask ends at the lower right
corner and a window (left, right) is laid around the same diagonal; -1 is no limit (the README, "2.1: Change behavior
of causal flag" and "2.3: Local attention"). The lengths themselves are data: see `attention_pairs.varlen`. Where keys
and values lie in pages ([pages, page, heads, width], with a table of blocks) or only part of them is used (leftpad_k,
seqused_k), even their sum is data, and the work unknown.
Compulsory traffic: q, k, v once (and dout, out, the log-sum-exp in the backward pass), out and the fp32 log-sum-exp of
each query and head written (dq, dk, dv in the backward pass).
"""

from __future__ import annotations

from typing import Any

from roofline.core.cost import Cost, unknown
from roofline.costs.attention_pairs import Lengths, backward, forward
from roofline.costs.calls import Tensor, size
from roofline.costs.custom import formula
from roofline.costs.flash_calls import LSE, is_table, lower_right, moved, out_size, packed_lengths


@formula("flash_attn::_flash_attn_forward", "attention")
def fixed(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Cost:
    """Cost attention of equal lengths; options: dropout, scale, causal, window left and right, ..."""
    batch, queries, heads, width = q.shape
    lengths = Lengths(batch, queries, k.shape[1])
    cost = forward(lengths, heads, width, v.shape[-1], lower_right(options[2:5]))
    return moved(cost, (q, k, v), out_size(q, v) + LSE * batch * queries * heads, options[2:3])


@formula("flash_attn::_flash_attn_varlen_forward", "attention")
def packed(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor, *options: Any) -> Cost:
    """Cost attention of packed lengths.

    options: longest query and key sequence, dropout, scale, causal, window left and right, ...
    """
    if len(k.shape) != 3 or any(map(is_table, options)):
        return unknown("attention to pages of keys and values: how many of them are used is not in the trace")
    total, heads, width = q.shape
    cost = forward(packed_lengths(q, k, cu_q, options), heads, width, v.shape[-1], lower_right(options[4:7]))
    return moved(cost, (q, k, v, cu_q, cu_k), out_size(q, v) + LSE * total * heads, options[4:5])


@formula("flash_attn::_flash_attn_backward", "attention")
def fixed_backward(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, *options: Any) -> Cost:
    """Cost the gradients of `fixed`; options: dq, dk, dv, dropout, scale, causal, window left and right, ..."""
    batch, queries, heads, width = q.shape
    cost = backward(Lengths(batch, queries, k.shape[1]), heads, width, v.shape[-1], lower_right(options[5:8]))
    return moved(cost, (dout, q, k, v, out, lse), size(q) + size(k) + size(v), options[5:6])


@formula("flash_attn::_flash_attn_varlen_backward", "attention")
def packed_backward(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, *options: Any) -> Cost:
    """Cost the gradients of `packed`.

    options: dq, dk, dv, sums of the lengths of queries and keys, the longest, dropout, scale, causal, window, ...
    """
    _, heads, width = q.shape
    sums = tuple(options[3:5])
    lengths = packed_lengths(q, k, sums[0], options[5:7])
    cost = backward(lengths, heads, width, v.shape[-1], lower_right(options[9:12]))
    return moved(cost, (dout, q, k, v, out, lse, *sums), size(q) + size(k) + size(v), options[9:10])
