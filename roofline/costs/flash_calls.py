"""Read calls of attention with flash-attention's order of arguments: their mask, their lengths, and what they move.

flash-attention itself and libraries that took its interface over (vLLM's, aiter's) record the same options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from roofline.core.cost import Cost
from roofline.costs.attention_pairs import Lengths, Mask, varlen
from roofline.costs.calls import Tensor, size

LSE = 4.0  # [byte] the log-sum-exp is fp32
_WHOLE = frozenset(("int", "long", "long int", "long long"))


def lower_right(masking: Sequence[Any]) -> Mask:
    """Read causal, window left, window right as a call of flash-attention's kind records them; -1 is no limit.

    Of a window that was not recorded there is none. Without a recorded `causal` the mask is taken to be one: it leaves
    the least work, and no floor is then too high.
    """
    causal, left, right = (*masking, None, None, None)[:3]
    left = left if type(left) is int and left >= 0 else None
    right = 0 if causal is not False else right if type(right) is int and right >= 0 else None
    return Mask(left, right, bottom_right=True)


def packed_lengths(q: Tensor, k: Tensor, sums: Tensor, longest: Sequence[Any]) -> Lengths:
    """Read packed lengths. sums: of the queries, one more than sequences. longest: queries and keys, as recorded.

    Raises ValueError where sequences of these lengths are not as long together as q and k.
    """
    lengths = [value if type(value) is int else None for value in (*longest[:2], None, None)]
    number = sums.numel - 1
    for total, longest_sequence in zip((q.shape[0], k.shape[0]), lengths, strict=False):
        if longest_sequence is not None and total > number * longest_sequence:
            raise ValueError(f"{number} sequences of at most {longest_sequence} are not {total} long together")
    return varlen(q.shape[0], k.shape[0], number, lengths[0], lengths[1])


def is_table(value: Any) -> bool:
    """Tell block_table, leftpad_k, seqused_k: behind the lengths the only tensors of whole numbers."""
    return isinstance(value, Tensor) and value.dtype in _WHOLE


def out_size(q: Tensor, v: Tensor) -> float:
    """Return the bytes of the result: as many rows as q, as wide as v."""
    return size(q) / max(1, q.shape[-1]) * v.shape[-1]


def moved(cost: Cost, reads: Sequence[Tensor], written: float, causal: Sequence[Any]) -> Cost:
    """Return a cost with its traffic [byte]. causal: as recorded, empty where it was not: a mask is then assumed."""
    cost = msgspec.structs.replace(cost, bytes_read=sum(map(size, reads)), bytes_written=written)
    if not causal or not isinstance(causal[0], bool):
        cost = cost + Cost(quality="assumed", note="causal and window not recorded: a causal mask")
    return cost
