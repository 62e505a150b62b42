"""Sum up the ops of two runs in rows by one key: each run's time, and the ceilings' and kernels' parts of A - B.

busy_A - busy_B = sum over rows (A - B)          and with the difference of the gaps it is wall_A - wall_B
A - B of a row  = ceilings + kernels + other     docs/comparing.md derives them and their ranges
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.analysis.bootstrap import Interval, interval
from roofline.analysis.floors import ATTAINED
from roofline.comparison.terms import Comparison, Side
from roofline.core.arrays import Array, Rows
from roofline.core.device import Device
from roofline.core.schema import Signature
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import CLASSES, GROUP_OF

Ends = tuple[float, float]
#: Keys of the work view: a fused kernel is divided over these, and over no others.
_DIVIDED = ("class", "group", "phase", "block")


@dataclass(frozen=True, slots=True)
class Part:
    """A run's work and time in a row. seconds: share time, floor: of the ops that have one, at both its ends [s]."""

    ops: float
    kernels: float
    seconds: float
    floor: Ends


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of A - B [s]: ceilings and kernels at both ends of the floors, each with `unshared` making A - B.

    unshared: of work that only one run does.
    """

    ceilings: Ends
    kernels: Ends
    unshared: float


@dataclass(frozen=True, slots=True)
class Row:
    """A row. parts: A's and B's, None of a run without such ops; seconds: A - B [s]; split: None without ceilings."""

    label: str
    parts: tuple[Part | None, Part | None]
    seconds: float
    ci95: Interval | None
    split: Split | None


def rows(comparison: Comparison, key: str) -> tuple[Row, ...]:
    """Sum up the ops of both runs by a key of `Analysis.by`, the largest difference first."""
    view = comparison.work if key in _DIVIDED else comparison.kernel
    sides = view.a, view.b
    labels = [_labels(side, key) for side in sides]
    number = {label: code for code, label in enumerate(dict.fromkeys((*labels[0], *labels[1])))}
    codes = [np.asarray([number[label] for label in run_labels], np.int64) for run_labels in labels]
    parts = [_parts(side, code, len(number)) for side, code in zip(sides, codes, strict=True)]
    spent = [_summed(code, side.seconds, len(number)) for side, code in zip(sides, codes, strict=True)]
    seconds = spent[0] - spent[1]
    splits = _splits(sides, codes, seconds)
    drawn = zip(*(_drawn(side, code, len(number)) for side, code in zip(sides, codes, strict=True)), strict=True)
    intervals = [interval(a - b, view.a.resamples, view.b.resamples, kind="ops") for a, b in drawn]
    summed_rows = [
        Row(label, (parts[0][code], parts[1][code]), float(seconds[code]), intervals[code], splits[code])
        for label, code in number.items()
    ]
    return tuple(sorted(summed_rows, key=_size))


def split_busy(comparison: Comparison) -> Split | None:
    """Split busy_A - busy_B, of the same work wherever it is in either run; None where a device has no ceilings.

    Rows hold work against that of the same row alone, so that theirs may have more of `other`.
    """
    sides = comparison.work.a, comparison.work.b
    seconds = np.asarray([sides[0].seconds.sum() - sides[1].seconds.sum()])
    return _splits(sides, [np.zeros(len(side.segments), np.int64) for side in sides], seconds)[0]


def _size(row: Row) -> tuple[float, float, str]:
    """Order the largest difference first; of rows that differ by rounding alone, the longest."""
    difference = abs(row.seconds)
    longest = max(part.seconds for part in row.parts if part is not None)
    return -difference if difference > ROUNDING * longest else 0.0, -longest, row.label


def _labels(side: Side, key: str) -> Sequence[str]:
    segments = side.segments
    if key in ("class", "group"):
        names = CLASSES if key == "class" else tuple(GROUP_OF[name] for name in CLASSES)
        return [names[code] for code in segments.op_class.tolist()]
    if key in ("phase", "block"):
        return [getattr(place, key) for place in segments.places]
    labels = side.analysis.labels(key)
    return [labels[op] for op in segments.op.tolist()]


def _summed(codes: Rows, values: Array, number: int) -> Array:
    """Sum the values of each code."""
    return np.asarray(np.bincount(codes, values, number), np.float64)


def _drawn(side: Side, codes: Rows, number: int) -> Iterator[Array]:
    """Yield the share time of each row in each draw [s]."""
    ends = np.cumsum(np.bincount(codes, minlength=number))[:-1]
    return map(side.drawn, np.split(np.argsort(codes, kind="stable"), ends))


def _reach(side: Side) -> Array:
    """Return the upper end of each segment's floor [s]."""
    return np.asarray(side.analysis.table.floor_reach[side.segments.op] * side.segments.weight)


def _parts(side: Side, codes: Rows, number: int) -> list[Part | None]:
    segments = side.segments
    columns = (segments.weight, segments.launches, side.seconds, segments.floor, _reach(side))
    sums = zip(*(_summed(codes, column, number).tolist() for column in columns), strict=True)
    return [
        Part(ops, kernels, seconds, (low, high)) if has_any else None
        for has_any, (ops, kernels, seconds, low, high) in zip(np.bincount(codes, minlength=number), sums, strict=True)
    ]


def _splits(sides: Sequence[Side], codes: Sequence[Rows], seconds: Array) -> list[Split | None]:
    """Split each row; None for all where a device has no ceilings."""
    if not all(side.analysis.device.ceilings for side in sides):
        return [None] * len(seconds)
    number: dict[tuple[int, Hashable], int] = {}
    works = [
        np.asarray([number.setdefault(key, len(number)) for key in zip(code.tolist(), _works(side), strict=True)], int)
        for side, code in zip(sides, codes, strict=True)
    ]
    # How often each run does each work, and what it takes: own time, share and both ends of the floor together [s].
    sums = np.asarray(
        [
            [
                _summed(work, column, len(number))
                for column in (side.segments.weight, side.own, side.seconds, side.segments.floor, _reach(side))
            ]
            for side, work in zip(sides, works, strict=True)
        ]
    )
    # Of works that both do and whose floors are known.
    row, is_known = np.asarray([(row, work is not None) for row, work in number], np.int64).reshape(-1, 2).T
    common = (is_known > 0) & (sums[:, 0] > 0).all(axis=0)
    row, (often_a, often_b) = row[common], sums[:, 0, common]
    (own_a, share_a, low_a, high_a), (own_b, share_b, low_b, high_b) = sums[:, 1:, common] / sums[:, :1, common]
    # Where a run took no time at all for a work, none of it ran beside others.
    shares = [
        np.divide(share, time, out=np.ones(len(row)), where=time > 0)
        for share, time in ((share_a, own_a), (share_b, own_b))
    ]
    weight = (often_a + often_b) / 2 * (shares[0] + shares[1]) / 2
    shared, low, high = (
        _summed(row, weight * difference, len(seconds))
        for difference in (
            own_a - own_b,
            by_ceilings(low_a, own_a, low_b, own_b),
            by_ceilings(high_a, own_a, high_b, own_b, scaled=True),
        )
    )
    parts = zip(
        *(column.tolist() for column in (low, high, shared - low, shared - high, seconds - shared)), strict=True
    )
    return [
        Split((of_low, of_high), (left_low, left_high), unshared)
        for of_low, of_high, left_low, left_high, unshared in parts
    ]


def by_ceilings(floor_a: Array, own_a: Array, floor_b: Array, own_b: Array, *, scaled: bool = False) -> Array:
    """Return the ceilings' part of t_A - t_B of equal work, each with its floors and own times in both runs [s].

    scaled: where the two readings disagree, that of the product.
    """
    floored = (floor_a > 0) & (floor_b > 0)
    missed = [
        np.divide(time, floor, out=np.ones_like(time), where=floored)
        for time, floor in ((own_a, floor_a), (own_b, floor_b))
    ]
    floor_difference, time_difference = floor_a - floor_b, own_a - own_b
    near = floored & (floor_a >= ATTAINED * own_a) & (floor_b >= ATTAINED * own_b)
    disagree = floored & ((time_difference - floor_difference) * (missed[0] - missed[1]) < 0)
    part: Array = np.where(near | (disagree & scaled), floor_difference * (missed[0] + missed[1]) / 2, floor_difference)
    return part


def _works(side: Side) -> list[Hashable]:
    """Return what work each segment does, in what runs can have in common; None where its floor is not known."""
    signatures = {id(signature): signature for signature in side.segments.signature}
    works = {number: _work(signature, side.analysis.device) for number, signature in signatures.items()}
    return [
        None if uncosted else works[id(signature)]
        for signature, uncosted in zip(side.segments.signature, side.segments.uncosted.tolist(), strict=True)
    ]


def _work(signature: Signature, device: Device) -> Hashable:
    cost, precision = signature.cost, signature.precision
    # The floor of a product whose matrix peak is not known is that of its memory traffic: any device would seem fast.
    if cost.useful_flops and device.rate(f"matrix.{precision.arithmetic if precision else None}") is None:
        return None
    return cost.model_flops, cost.vector_flops, cost.bytes_read, cost.bytes_written
