"""Cost attention to keys and values that lie in the pages of a cache, by the sums of a batch.

A page table is data, and so are the lengths of the sequences; a serving engine says their sums in the name of a step.
Compulsory traffic: the queries, each key and value that some query sees once, and the result. The new keys and values
are in the cache already, or are among the keys of the batch all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from roofline.core.batch import Sequences
from roofline.core.cost import Cost, unknown
from roofline.costs import attention_pairs
from roofline.costs.calls import Tensor
from roofline.costs.context import Context
from roofline.costs.dtypes import DTYPES

NO_BATCH = "no annotation says how long the sequences of the batch are"


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of queries and of keys, and numbers per head of keys and of values. bytes: of a number in the cache."""

    queries: int
    keys: int
    width: int
    width_v: int
    bytes: float


def cost(q: Tensor, of: Heads, parts: Sequence[Sequences], left: int | None = None, out: Tensor | None = None) -> Cost:
    """Cost the attention of some sequences of a batch.

    left: keys before a query that a window leaves, None: all. out: tells the type of the result, None: that of q.

    Unknown where the sums are not recorded, do not tell what a window leaves, or are of more queries than there are.
    """
    queries = sum(part.queries for part in parts)
    if not queries:
        return unknown(NO_BATCH)
    if queries > q.shape[0]:
        return unknown(f"the annotation around it is of {queries} queries, and it has {q.shape[0]}")
    work = attention_pairs.of_batch(parts, of.queries, of.width, of.width_v, left)
    if work.quality == "unknown":
        return work
    cached = attention_pairs.keys_read(parts, left) * of.keys * (of.width + of.width_v) * of.bytes
    return msgspec.structs.replace(
        work,
        bytes_read=queries * of.queries * of.width * DTYPES[q.dtype][1] + cached,
        bytes_written=float(queries * of.queries * of.width_v * DTYPES[(out or q).dtype][1]),
    )


def of_engine(
    context: Context,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    left: int | None,
    causal: tuple[Any, ...],
    out: Tensor | None = None,
) -> Cost:
    """Cost attention of all sequences of the engine's step. causal: as recorded, () where it was not."""
    if context.batch is None:
        return unknown(NO_BATCH)
    if causal != (True,):
        return unknown("attention to pages without a causal mask")
    return cost(q, heads(q, k, v), (context.batch.prefill, context.batch.decode), left, out)


def decoding(context: Context, q: Tensor, of: Heads, out: Tensor) -> Cost:
    """Cost attention of the sequences that the engine's step continues."""
    if context.batch is None:
        return unknown(NO_BATCH)
    return cost(q, of, (context.batch.decode,), out=out)


def heads(q: Tensor, k: Tensor, v: Tensor) -> Heads:
    """Read the heads off queries [tokens, heads, width] and pages [..., heads, width]. ValueError for other layouts."""
    if k.shape[-1] != q.shape[-1]:
        raise ValueError(f"heads of {q.shape[-1]} numbers in the queries and of {k.shape[-1]} in the cache")
    return Heads(q.shape[1], k.shape[-2], q.shape[2], v.shape[-1], DTYPES[k.dtype][1])
