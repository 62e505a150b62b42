"""Stretches of a step that touch the same buffers in the same order turn after turn, as a loop in Python does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.accesses import Accesses
from roofline.core.rows import Ints

#: So many distances between equal ops are tried for a period, the most frequent first. By choice: a loop shows its
#: period in all of its ops, but for those that stand several times in one turn.
_TRIED = 8
#: A stretch is folded where at least so many ops repeat those of the turn before. By choice: to follow so many takes 10
#: to 70 ms (steps of BERT and GPT-2).
_LEAST = 1024
#: Odd numbers without a pattern, for `_digests`: the fractional parts of the golden ratio, of e and of pi, in 64 bits.
_MIX = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xB7E151628AED2A6B, 0x243F6A8885A308D3))


class Repeat(NamedTuple):
    """Ops from `begin` on, `period` in each of so many equal turns."""

    begin: int
    period: int
    turns: int

    @property
    def end(self) -> int:
        """Return the first op after it."""
        return self.begin + self.period * self.turns


def fold_repeats(touched: Accesses) -> tuple[Ints, Ints, Ints]:
    """Leave out all turns but two of each stretch that repeats itself: a cache does the same in the others.

    What the second turn finds in the cache, all later ones find. What becomes of the writes of the first turn becomes
    of those of all others but the last, which the second one stands for.

    Returns the ops that stay, and for each op of the step which of those it reads like, and which it writes like.
    """
    count = len(touched.reads)
    stays, reads_like = np.ones(count, bool), np.arange(count)
    writes_like = reads_like.copy()
    for repeat in repeats(touched):
        turn, place = np.divmod(np.arange(repeat.end - repeat.begin), repeat.period)
        reads_like[repeat.begin : repeat.end] = repeat.begin + np.minimum(turn, 1) * repeat.period + place
        last = turn == repeat.turns - 1
        writes_like[repeat.begin : repeat.end] = repeat.begin + last * repeat.period + place
        stays[repeat.begin + 2 * repeat.period : repeat.end] = False
    number = np.cumsum(stays) - 1
    return np.flatnonzero(stays), number[reads_like], number[writes_like]


def repeats(touched: Accesses) -> list[Repeat]:
    """List long stretches of three or more equal turns, none in another; what saves most has precedence."""
    free = np.ones(len(touched.reads), bool)
    accepted: list[Repeat] = []
    for repeat in sorted(
        _candidates(_digests(touched)), key=lambda stretch: stretch.period - stretch.end + stretch.begin
    ):
        if free[repeat.begin : repeat.end].all() and _equal(touched, repeat):
            free[repeat.begin : repeat.end] = False
            accepted.append(repeat)
    return sorted(accepted)


def _candidates(digests: NDArray[np.uint64]) -> Iterator[Repeat]:
    order = np.argsort(digests, kind="stable")
    equal = digests[order[1:]] == digests[order[:-1]]
    distances, often = np.unique(np.diff(order)[equal], return_counts=True)
    for period in distances[np.argsort(-often, kind="stable")][:_TRIED].tolist():
        is_equal = np.concatenate([[False], digests[period:] == digests[:-period], [False]])
        begins, ends = np.flatnonzero(is_equal[1:] != is_equal[:-1]).reshape(-1, 2).T
        long = ends - begins >= max(2 * period, _LEAST)
        for begin, end in zip(begins[long].tolist(), ends[long].tolist(), strict=True):
            yield Repeat(begin, period, 1 + (end - begin) // period)


def _digests(touched: Accesses) -> NDArray[np.uint64]:
    """Return a number of each op, the same for ops that touch as much of the same buffers, and hardly of others."""
    many = touched.reads + touched.writes
    begins = np.cumsum(many) - many
    place = np.arange(len(touched.buffer), dtype=np.uint64)
    place -= np.repeat(begins.astype(np.uint64), many)
    place *= _MIX[2]
    place |= np.uint64(1)
    mixed = touched.buffer.astype(np.uint64)
    mixed += _MIX[0]
    mixed *= np.ascontiguousarray(touched.size, np.float64).view(np.uint64) ^ _MIX[1]
    mixed *= place
    mixed ^= mixed >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    ends = sums[begins + many] - sums[begins]
    counts = touched.reads.astype(np.uint64) * _MIX[0] + touched.writes.astype(np.uint64) * _MIX[1]
    digests: NDArray[np.uint64] = ends * _MIX[2] + counts
    return digests


def _equal(touched: Accesses, repeat: Repeat) -> bool:
    """Return whether the turns touch the same, without relying on digests."""
    begin, second, end = repeat.begin, repeat.begin + repeat.period, repeat.end
    many = touched.reads + touched.writes
    start, length, stop = (int(many[part].sum()) for part in (slice(begin), slice(begin, second), slice(end)))
    return all(
        np.array_equal(column[first : last - step], column[first + step : last])
        for column, first, step, last in (
            (touched.reads, begin, repeat.period, end),
            (touched.writes, begin, repeat.period, end),
            (touched.buffer, start, length, stop),
            (touched.size, start, length, stop),
        )
    )
