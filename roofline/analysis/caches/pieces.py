"""Memory cut into pieces that a cache holds or evicts as a whole, and the order in which a step touches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.accesses import Accesses
from roofline.core.arrays import Array
from roofline.core.rows import Ints, ranks

#: The largest piece as a share of the cache, and into how many a buffer is cut at most: nothing of a buffer that is
#: four times as large as the cache is found again. On both counted steps of an H100, pieces of a 16th to a 256th of
#: its L2 give the same traffic to 0.5 %. The coarser cuts are for steps with more touches than `_TOUCHES`.
_CUTS = ((1 / 64, 256), (1 / 16, 64), (1 / 4, 16), (1.0, 4))
#: Touches that are followed: 2.8 s of CPU for so many at random, on a machine that did other work as well.
_TOUCHES = 1 << 21


@dataclass(frozen=True, slots=True)
class Touches:
    """The pieces of memory that a step touches, in order.

    op: row of the op; piece: number of the piece; written: whether it is written or read; bytes: of the access that go
    to the piece; each per touch. size: bytes of each piece, by its number. shared: whether buffers that overlap share
    pieces.
    """

    op: Ints
    piece: Ints
    written: NDArray[np.bool_]
    bytes: Array
    size: Array
    shared: bool


def touch_pieces(accesses: Accesses, cache: float, addresses: Sequence[int | None] = ()) -> Touches:
    """Cut the accesses of a step into touches of pieces.

    An op walks through all its inputs at once, from begin to end: of two of different size it is at the same share of
    both. Then it walks through its results. Ops do so in orders of their own, and in this one they find most in the
    cache. Parts that one op reads of one buffer lie behind each other.

    cache: usable size of the last-level cache [byte]. addresses: of each buffer, by its number; () where they are not
    recorded. A buffer without an address has memory of its own.
    """
    buffer = accesses.numbered
    offset = _offsets(accesses, buffer)
    extent = np.zeros(int(buffer.max(initial=-1)) + 1)
    np.maximum.at(extent, buffer, offset + accesses.size)
    address = _recorded(accesses, buffer, len(extent), addresses)
    unplaced = np.isnan(address)  # in memory of their own
    top = (address + extent)[~unplaced].max(initial=0.0)
    address[unplaced] = top + np.cumsum(extent[unplaced]) - extent[unplaced]
    begin = address[buffer] + offset
    end = begin + accesses.size
    for share, max_pieces in _CUTS:
        grid = _grid(address, extent, cache * share, max_pieces)
        if grid is None:
            continue
        cuts = np.unique(np.concatenate([begin, end, grid]))
        first, last = np.searchsorted(cuts, begin), np.searchsorted(cuts, end)
        if (last - first).sum() <= _TOUCHES:
            return _in_order(accesses, cuts, first, last, shared=True)
    # Buffers that overlap like those of no allocator, or are touched in thousands of different lengths.
    cuts = np.concatenate([[0.0], np.cumsum(extent)])
    return _in_order(accesses, cuts, buffer, buffer + (accesses.size > 0), shared=False)


def _in_order(accesses: Accesses, cuts: Array, first: Ints, last: Ints, shared: bool) -> Touches:
    """Order the touches of accesses, each from its first piece to the one before its last."""
    size, count = np.diff(cuts), last - first
    access = np.repeat(np.arange(len(count)), count)
    piece = np.arange(len(access)) - np.repeat(np.cumsum(count) - last, count)
    length = np.maximum(cuts[last] - cuts[first], 1.0)
    op = accesses.op
    share = (cuts[piece] - cuts[first][access]) / length[access]  # below 1
    order = np.argsort(2.0 * op[access] + accesses.written[access] + share, kind="stable")
    access, piece = access[order], piece[order]
    moved = size[piece] * (accesses.size / length)[access]
    return Touches(op[access], piece, accesses.written[access], moved, size, shared)


def _recorded(accesses: Accesses, buffer: Ints, count: int, addresses: Sequence[int | None]) -> Array:
    """Return the first address of each buffer [byte], NaN where it is not recorded."""
    address = np.full(count, np.nan)
    recorded = np.asarray([np.nan if first is None else first for first in addresses], np.float64)
    inside = (accesses.buffer >= 0) & (accesses.buffer < len(recorded))
    address[buffer[inside]] = recorded[accesses.buffer[inside]]
    return address


def _offsets(accesses: Accesses, buffer: Ints) -> Array:
    """Return the bytes that an op touched of the same buffer in the same direction before each access."""
    op = accesses.op
    groups = ranks((2 * op + accesses.written) * (int(buffer.max(initial=0)) + 1) + buffer)
    offset = np.zeros(len(buffer))
    order = np.argsort(groups, kind="stable")
    repeated = np.flatnonzero(np.diff(groups[order]) == 0) + 1
    for place in repeated.tolist():  # rare: a packed tensor of queries, keys and values
        offset[order[place]] = offset[order[place - 1]] + accesses.size[order[place - 1]]
    return offset


def _grid(address: Array, extent: Array, piece_size: float, max_pieces: int) -> Array | None:
    """Return addresses that cut each buffer into pieces of `piece_size`, or a power of two of it: at most `max_pieces`.

    They are multiples of it, so that buffers which share memory are cut at the same places. None where they are more
    than `_TOUCHES`: each makes one touch at least, and they would take gigabytes for a million buffers.
    """
    step = piece_size * 2.0 ** np.ceil(np.log2(np.maximum(1.0, extent / (piece_size * max_pieces))))
    first = np.floor(address / step) + 1
    lines = np.maximum(0.0, np.ceil((address + extent) / step) - first).astype(np.int64)
    if lines.sum() > _TOUCHES:
        return None
    place = np.arange(lines.sum()) - np.repeat(np.cumsum(lines) - lines, lines)
    cuts: Array = (np.repeat(first, lines) + place) * np.repeat(step, lines)
    return cuts
