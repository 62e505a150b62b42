"""Count the (query, key) pairs that masks of fused attention leave, exactly, and the work on them (docs/counting.md).

Executed FLOPs are of the whole square, useful FLOPs of the pairs that the mask leaves. Sequences of one call may have
different lengths (varlen); a trace records their number, their sum and the longest, not each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from roofline.core.batch import Sequences
from roofline.core.cost import Cost, matrix, unknown

_UNTOLD = "how many keys its queries see is not in the trace"
_UNTOLD_WINDOW = "what a window leaves of its keys hangs on the length of each sequence, and the trace tells only sums"


@dataclass(frozen=True, slots=True)
class Mask:
    """Query i of `queries` sees the keys from i + shift - left to i + shift + right; None: no limit on that side.

    bottom_right: shift = keys - queries, the last query sees the last key (flash-attention since 2.1); else 0 (torch's
    `is_causal`).
    """

    left: int | None = None
    right: int | None = None
    bottom_right: bool = False


def pairs(queries: int, keys: int, mask: Mask) -> int:
    """(query, key) pairs that the mask leaves; in closed form, so that no length takes long."""
    shift = keys - queries if mask.bottom_right else 0
    above = queries * keys if mask.right is None else _clipped(shift + mask.right + 1, queries, keys)
    below = 0 if mask.left is None else _clipped(shift - mask.left, queries, keys)
    return max(0, above - below)


def _clipped(first: int, number: int, largest: int) -> int:
    """Sum i + first, held between 0 and `largest`, over i in [0, number)."""
    return _below(first + number, largest) - _below(first, largest)


def _below(end: int, largest: int) -> int:
    """Sum x, held between 0 and `largest`, over 0 <= x < end."""
    if end <= 0:
        return 0
    ramp = min(end, largest + 1)
    return ramp * (ramp - 1) // 2 + (end - ramp) * largest


@dataclass(frozen=True, slots=True)
class Lengths:
    """`number` sequences of which each has `queries` and `keys`; note: what was assumed of them."""

    number: int
    queries: float
    keys: float
    note: str = ""


def varlen(total_q: int, total_k: int, number: int, longest_q: int | None, longest_k: int | None) -> Lengths:
    """Packed sequences: exact where all are as long as the longest, else taken to be of equal length."""
    number = max(1, number)
    queries, keys = total_q / number, total_k / number
    exact = number == 1 or (longest_q == queries and longest_k == keys)
    return Lengths(number, queries, keys, "" if exact else "sequences of equal length")


def forward(lengths: Lengths, heads: int, width: int, width_v: int, mask: Mask) -> Cost:
    """softmax(Q K^T) V in one kernel: 2 products; the vector work is that of `formulas.attention`."""
    full, unmasked = _counts(lengths, heads, mask)
    cost = matrix(2.0 * full * (width + width_v), useful=2.0 * unmasked * (width + width_v))
    return _assumed(cost + Cost(vector_flops=5.0 * unmasked, functions={"exp": unmasked}), lengths.note)


def of_batch(parts: Sequence[Sequences], heads: int, width: int, width_v: int, left: int | None = None) -> Cost:
    """`forward` over sequences of which sums are known, with a causal mask that ends at the lower right corner.

    Of q queries and k keys the mask leaves q k - q (q - 1) / 2 pairs. left: keys that a window leaves before each
    query; which pairs it leaves hangs on each length: unknown where the sums do not tell these.
    """
    cost = Cost()
    for part in parts:
        if not part.number:
            continue
        if part.keys is None or part.products is None or part.squares is None:
            return unknown(_UNTOLD)
        if left is not None and left + 1 < _longest(part):
            if not _all_equal(part):
                return unknown(_UNTOLD_WINDOW)
            lengths = Lengths(part.number, part.queries / part.number, part.keys / part.number)
            cost += forward(lengths, heads, width, width_v, Mask(left, 0, bottom_right=True))
            continue
        full = float(heads * part.products)
        unmasked = full - heads * (part.squares - part.queries) / 2
        flops_per_pair = 2.0 * (width + width_v)
        cost += matrix(flops_per_pair * full, useful=flops_per_pair * unmasked)
        cost += Cost(vector_flops=5.0 * unmasked, functions={"exp": unmasked})
    return cost


def keys_read(parts: Sequence[Sequences], left: int | None = None) -> float:
    """Keys that some query of a sequence sees, summed over sequences; those before all windows are not read.

    Raises ValueError where lengths were not recorded, or a window cuts sequences of lengths that sums do not tell.
    """
    total = 0.0
    for part in parts:
        if not part.number:
            continue
        if part.keys is None:
            raise ValueError(_UNTOLD)
        keys = float(part.keys)
        if left is not None and left + 1 < _longest(part):
            if not _all_equal(part):
                raise ValueError(_UNTOLD_WINDOW)
            keys = min(keys, part.queries + float(part.number * left))
        total += keys
    return total


def _longest(part: Sequences) -> int:
    """Bound the keys of the longest sequence: each other one has as many keys as queries at least, and one query.

    Raises ValueError where lengths were not recorded.
    """
    if part.keys is None or part.squares is None:
        raise ValueError(_UNTOLD)
    return part.keys - part.queries + isqrt(max(0, part.squares - part.number + 1))


def _all_equal(part: Sequences) -> bool:
    """Tell whether sums show that all sequences have equal lengths: one alone, or equal queries and no other keys."""
    equal = part.squares is not None and part.number * part.squares == part.queries**2
    return part.number == 1 or (equal and part.keys == part.queries)


def backward(lengths: Lengths, heads: int, width: int, width_v: int, mask: Mask) -> Cost:
    """The gradients: 4 products asked for, 5 executed; the vector work is that of `formulas.attention_backward`."""
    full, unmasked = _counts(lengths, heads, mask)
    asked = 2.0 * (2 * width + 2 * width_v)
    ran = asked + 2.0 * width
    vector = 5.0 * unmasked + 2.0 * heads * lengths.number * lengths.queries * width_v
    cost = matrix(full * asked, full * ran, unmasked * ran)
    return _assumed(cost + Cost(vector_flops=vector, functions={"exp": unmasked}), lengths.note)


def in_blocks(square: float, run: float, unmasked: float, width: int, width_v: int) -> Cost:
    """`forward` of a kernel that leaves out blocks of pairs: so many of all heads in the square, run, and left by the
    mask. The vector work is done on what runs.
    """
    flops_per_pair = 2.0 * (width + width_v)
    return matrix(square * flops_per_pair, run * flops_per_pair, unmasked * flops_per_pair) + Cost(
        vector_flops=5.0 * run, functions={"exp": run}
    )


def in_blocks_backward(square: float, run: float, unmasked: float, width: int, width_v: int, rows: float) -> Cost:
    """`backward` of one, which goes through the blocks for dQ and once more for dK and dV: 7 products.

    rows: queries of all heads.
    """
    asked = 2.0 * (2 * width + 2 * width_v)
    ran = asked + 2.0 * width + 2.0 * (width + width_v)
    vector = 2.0 * 5.0 * run + 2.0 * rows * width_v
    return matrix(square * asked, run * ran, unmasked * ran) + Cost(vector_flops=vector, functions={"exp": 2.0 * run})


def _counts(lengths: Lengths, heads: int, mask: Mask) -> tuple[float, float]:
    """Pairs of all sequences and heads: of the square, and of what the mask leaves."""
    times = float(heads * lengths.number)
    full = lengths.queries * lengths.keys
    # Mean lengths need not be whole: the mask is laid on the nearest whole ones.
    rows, columns = round(lengths.queries), round(lengths.keys)
    unmasked = float(pairs(rows, columns, mask))
    if rows * columns != full:
        unmasked *= full / max(1, rows * columns)
    return times * full, times * unmasked


def _assumed(cost: Cost, note: str) -> Cost:
    return cost + Cost(quality="assumed", note=note) if note else cost
