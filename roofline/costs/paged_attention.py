"""Cost attention to keys and values that lie in the pages of a cache, by the sums of a batch.

A page table is data, and so are the lengths of the sequences; a serving engine says their sums in the name of a step.
Compulsory traffic: the queries, each key and value that some query sees once, and the result. The new keys and values
are in the cache already, or are among the keys of the batch all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roofline.core.cost import Cost, unknown
from roofline.costs import attention_pairs
from roofline.costs.attention_pairs import UNTOLD
from roofline.costs.calls import Tensor
from roofline.costs.context import Sequences
from roofline.costs.dtypes import DTYPES


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of queries and of keys, and numbers per head of keys and of values. bytes: of a number in the cache."""

    queries: int
    keys: int
    width: int
    width_v: int
    bytes: float


def cost(
    q: Tensor, heads: Heads, parts: Sequence[Sequences], left: int | None = None, out: Tensor | None = None
) -> Cost:
    """Cost the attention of some sequences of a batch.

    left: keys before a query that a window leaves, None: all. out: tells the type of the result, None: that of q.

    Unknown where the sums are not recorded, or are of more queries than there are.
    """
    queries = sum(part.queries for part in parts)
    if not queries:
        return unknown("no annotation says how long the sequences of the batch are")
    if any(part.number and part.keys is None for part in parts):
        return unknown(UNTOLD)
    if queries > q.shape[0]:
        return unknown(f"the annotation around it is of {queries} queries, and it has {q.shape[0]}")
    work = attention_pairs.of_batch(parts, heads.queries, heads.width, heads.width_v, left)
    cached = attention_pairs.keys_read(parts, left) * heads.keys * (heads.width + heads.width_v) * heads.bytes
    return msgspec.structs.replace(
        work,
        bytes_read=queries * heads.queries * heads.width * DTYPES[q.dtype][1] + cached,
        bytes_written=float(queries * heads.queries * heads.width_v * DTYPES[(out or q).dtype][1]),
    )
