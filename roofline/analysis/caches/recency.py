"""Find what a cache evicts that drops the least recently used bytes first, of a step that is repeated.

Distinct bytes touched since the last touch of a piece, its own included, are its distance. It is still there if they
fit the cache: the same a list of pieces gives that is cut at the cache's size, without walking through the list.
"""

from __future__ import annotations

import numpy as np

from roofline.analysis.caches.pieces import Touches
from roofline.core.arrays import Bools
from roofline.core.rows import Ints


def find_misses(touches: Touches, cache: float) -> Bools:
    """Return bool[touch]: whether the piece was evicted since its last touch, in this step or in the one before.

    cache: usable size of the last-level cache [byte].
    """
    count = len(touches.piece)
    if not count:
        return np.zeros(0, bool)
    sizes = touches.size[touches.piece]
    previous, following = _neighbours(touches.piece)
    last = following >= count
    if sizes[last].sum() <= cache:  # all that a step touches stays
        return np.zeros(count, bool)
    # The latest touches of the step before whose pieces fit, counted back from its end: positions -1, -2, ...
    fits = np.cumsum(np.where(last, sizes, 0.0)[::-1]) <= cache
    edge = -1 - int(fits.sum())
    total = float(np.where(last, sizes, 0.0)[count + edge + 1 :].sum())
    # A window moves over the touches: behind `edge` up to the present one, with so many distinct bytes in it.
    # Positions of the step before are negative, and so are those that Python counts from the end.
    after, size = [*following.tolist(), *(following - count).tolist()], [*sizes.tolist(), *sizes.tolist()]
    missed = []
    for place, before in enumerate(previous.tolist()):
        if before <= edge:
            total += size[place]
            while total > cache and edge < place:
                edge += 1
                if after[edge] > place:
                    total -= size[edge]
            if before < edge:
                missed.append(place)
    misses = np.zeros(count, bool)
    misses[missed] = True
    return misses


def find_write_backs(touches: Touches, misses: Bools) -> Bools:
    """Return bool[touch]: whether what was written reaches main memory: evicted before it is written again.

    misses: of `find_misses`.
    """
    order = np.argsort(touches.piece, kind="stable")
    piece, writes = touches.piece[order], np.flatnonzero(touches.written[order])
    misses_until = np.concatenate([[0], np.cumsum(misses[order])])  # before each place, piece after piece
    begin = np.searchsorted(piece, piece[writes])
    end = np.searchsorted(piece, piece[writes], side="right")
    next_write = np.append(writes[1:], len(piece))
    is_last = next_write >= end  # the last write of its piece in this step: the next one is the first of the next step
    first = writes[np.searchsorted(writes, begin)]
    evictions = np.where(
        is_last,
        misses_until[end] - misses_until[writes + 1] + misses_until[first + 1] - misses_until[begin],
        misses_until[np.minimum(next_write + 1, len(piece))] - misses_until[writes + 1],
    )
    written_back = np.zeros(len(piece), bool)
    written_back[order[writes]] = evictions > 0
    return written_back


def _neighbours(piece: Ints) -> tuple[Ints, Ints]:
    """Return the position of the touch of the same piece before and after each, also in the steps next to it."""
    count = len(piece)
    order = np.argsort(piece, kind="stable")
    first = np.flatnonzero(np.diff(piece[order], prepend=-1))
    last = np.append(first[1:], count) - 1
    previous, following = np.empty((2, count), np.int64)
    before, after = np.roll(order, 1), np.roll(order, -1)
    before[first], after[last] = order[last] - count, order[first] + count
    previous[order], following[order] = before, after
    return previous, following
