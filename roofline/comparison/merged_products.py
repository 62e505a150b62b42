"""Divide products that a compiler of one run merged into those that the other run has.

XLA makes one product of those that share an operand, as query, key and value of an attention do. Divided by FLOPs it
meets each of them, so that their times are compared as what they are: the same work at another rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from roofline.comparison.matching import match
from roofline.comparison.segments import MOST_SEGMENTS, Segments
from roofline.core.arrays import Array, Rows
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import CLASSES


def one_to_one(a: Segments, b: Segments) -> tuple[Segments, Segments]:
    """Divide each merged product of two runs where the other run has its parts in the same block.

    Not where the several are so small that the launch is their floor: then that they are several is what makes the
    difference.
    """
    parts_a: dict[int, Array] = {}
    parts_b: dict[int, Array] = {}
    for stretch in match(a, b).unmatched:
        ours, theirs = _products(a, stretch.a), _products(b, stretch.b)
        if len(ours) * len(theirs) <= MOST_SEGMENTS:  # a bound on the time
            parts_a |= _parts(a, ours, b, theirs)
            parts_b |= _parts(b, theirs, a, ours)
    return _divided(a, parts_a), _divided(b, parts_b)


def _products(segments: Segments, rows: Rows) -> Rows:
    """Return those of some segments that are products which were asked for all that they execute."""
    asked_for = (segments.flops > 0) & (segments.model_flops * (1 + ROUNDING) >= segments.flops)
    return np.asarray(rows[(asked_for & (segments.op_class == CLASSES.index("contraction")))[rows]])


def _parts(merged: Segments, rows: Rows, several: Segments, candidates: Rows) -> dict[int, Array]:
    """Return the FLOPs of the parts of each of `rows` that is as much as several neighbours among `candidates`.

    As few of them as can be, and each of them once.
    """
    parts: dict[int, Array] = {}
    unused = candidates.tolist()
    for row in rows.tolist():
        flops = several.flops[unused]
        windows = [
            (end - begin, begin, end)
            for begin, end in _windows(flops.tolist(), float(merged.flops[row]))
            if not any(several.ceiling[candidate].startswith("launch.") for candidate in unused[begin:end])
        ]
        if windows:
            _, begin, end = min(windows)
            parts[row] = flops[begin:end]
            del unused[begin:end]
    return parts


def _windows(sizes: Sequence[float], target: float) -> Iterator[tuple[int, int]]:
    """Yield where two or more neighbours add up to `target`: begin and end. Sizes are above 0."""
    begin, total = 0, 0.0
    for end, size in enumerate(sizes, 1):
        total += size
        while total > target * (1 + ROUNDING):
            total -= sizes[begin]
            begin += 1
        if end - begin > 1 and total >= target * (1 - ROUNDING):
            yield begin, end


def _divided(segments: Segments, parts: Mapping[int, Array]) -> Segments:
    """Divide some of the segments in proportion to the FLOPs of their parts."""
    if not parts:
        return segments
    rows = np.repeat(np.arange(len(segments)), [len(parts.get(row, (0.0,))) for row in range(len(segments))])
    share, flops, model = np.ones(len(rows)), segments.flops[rows], segments.model_flops[rows]
    for row, sizes in parts.items():
        mine = rows == row
        share[mine] = sizes / sizes.sum()
        flops[mine] = model[mine] = sizes
    return replace(segments.parted(rows, share), flops=flops, model_flops=model)
