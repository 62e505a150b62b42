"""Products that a compiler of one run merged, divided again into those that the other run has.

XLA makes one product of those that share an operand, as query, key and value of an attention do. The merged one stands
at one place and has no partner, nor have the several. Divided by FLOPs it meets each of them, so that their times are
compared as what they are: the same work at another rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from roofline.comparison.arrays import Array, Rows
from roofline.comparison.conservation import asked_and_done
from roofline.comparison.matching import match
from roofline.comparison.segments import MOST_SEGMENTS, Segments
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import CLASSES


def one_to_one(a: Segments, b: Segments) -> tuple[Segments, Segments]:
    """The segments of two runs, with each merged product divided where the other run has its parts in the same block.

    Not where the several are so small that the launch is their floor: then that they are several is what makes the
    difference.
    """
    found = match(a, b)
    parts_a: dict[int, Array] = {}
    parts_b: dict[int, Array] = {}
    for stretch in found.unmatched:
        ours, theirs = _products(a, stretch.a), _products(b, stretch.b)
        if len(ours) * len(theirs) <= MOST_SEGMENTS:  # a bound on the time
            parts_a |= _parts(a, ours, b, theirs)
            parts_b |= _parts(b, theirs, a, ours)
    return _divided(a, parts_a), _divided(b, parts_b)


def _products(some: Segments, rows: Rows) -> Rows:
    """Those of some segments that are products which execute what they were asked for."""
    asked = asked_and_done(some)[rows]
    exact = (asked > 0) & (np.abs(asked - some.flops[rows]) <= ROUNDING * asked)
    return np.asarray(rows[exact & (some.op_class[rows] == CLASSES.index("contraction"))])


def _parts(merged: Segments, rows: Rows, several: Segments, others: Rows) -> dict[int, Array]:
    """Of each of `rows` that is as much as several of `others` that follow each other, their FLOPs.

    As few of them as can be, and each of them once.
    """
    found: dict[int, Array] = {}
    left = others.tolist()
    for row in rows.tolist():
        flops = several.flops[left]
        windows = [
            (end - begin, begin, end)
            for begin, end in _windows(flops.tolist(), float(merged.flops[row]))
            if not _small(several, left[begin:end])
        ]
        if windows:
            _, begin, end = min(windows)
            found[row] = flops[begin:end]
            del left[begin:end]
    return found


def _windows(sizes: Sequence[float], whole: float) -> Iterator[tuple[int, int]]:
    """Where two or more neighbours add up to `whole`: begin and end. Sizes are above 0."""
    begin, total = 0, 0.0
    for end, size in enumerate(sizes, 1):
        total += size
        while total > whole * (1 + ROUNDING):
            total -= sizes[begin]
            begin += 1
        if end - begin > 1 and total >= whole * (1 - ROUNDING):
            yield begin, end


def _small(some: Segments, rows: Sequence[int]) -> bool:
    return any(some.ceiling[row].startswith("launch.") for row in rows)


def _divided(some: Segments, parts: Mapping[int, Array]) -> Segments:
    """Segments with some of them as several, in proportion to the FLOPs of each part."""
    if not parts:
        return some
    rows = np.repeat(np.arange(len(some)), [len(parts.get(row, (0.0,))) for row in range(len(some))])
    share, flops, model = np.ones(len(rows)), some.flops[rows], some.model_flops[rows]
    for row, sizes in parts.items():
        mine = rows == row
        share[mine] = sizes / sizes.sum()
        flops[mine] = model[mine] = sizes
    return replace(some.parted(rows, share), flops=flops, model_flops=model)
