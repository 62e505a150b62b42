"""The ops of two runs in rows by one key: what each run spends there, and what of the difference is whose.

    busy_A - busy_B = sum over rows (A - B)          and with the difference of the gaps it is wall_A - wall_B
    A - B of a row  = ceilings + kernels + other

Ops of a row are the same work where they were asked for the same FLOPs and move the same bytes, whatever they are
called. A has n_A of them, each with a floor f_A and an own time t_A. Of t_A - t_B a part c is the ceilings'
(`same_work.py`). As the difference of two products splits symmetrically,

    ceilings  c s (n_A + n_B) / 2                                  what other ceilings make of the time
    kernels   (t_A - t_B - c) s (n_A + n_B) / 2                    what another share of the roof makes of it
    other     what is left of A - B                                work of one run alone, or whose floor is not known;
                                                                   and what ops share of an instant

Of an op that runs beside others the step has a share of its own time: s is the mean of that in both runs.

A floor is a range where nobody knows what the caches held (`OpTable.floor_reach`). Its two ends are two assumptions,
each of both runs alike: that what fits a cache came from it, and that nothing did. Where the two readings of
`same_work.py` disagree the first end has the one and the second end the other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.analysis.bootstrap import Interval
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.same_work import by_ceilings, reach, works
from roofline.comparison.terms import Comparison, Side
from roofline.core import statistics
from roofline.core.vocabulary import CLASSES, GROUP_OF

Ends = tuple[float, float]
#: Keys of the work view: a fused kernel is divided over these, and over no others.
_DIVIDED = ("class", "group", "phase", "block")
#: Rows whose draws are held at a time: a bound on memory.
_CHUNK = statistics.RESAMPLES


@dataclass(frozen=True, slots=True)
class Part:
    """What one run does in a row. seconds: share time, floor: of the ops that have one, at both its ends [s]."""

    ops: float
    kernels: float
    seconds: float
    floor: Ends


@dataclass(frozen=True, slots=True)
class Split:
    """What of A - B is whose [s]; ceilings and kernels at both ends of the floors, each with `other` making A - B."""

    ceilings: Ends
    kernels: Ends
    other: float


@dataclass(frozen=True, slots=True)
class Row:
    """One row. parts: A's and B's, None of a run without such ops; seconds: A - B [s]; split: None without ceilings."""

    label: str
    parts: tuple[Part | None, Part | None]
    seconds: float
    ci95: Interval | None
    split: Split | None


def rows(comparison: Comparison, key: str) -> tuple[Row, ...]:
    """The ops of both runs by a key of `Analysis.by`, the largest difference first."""
    divided = key in _DIVIDED
    view = comparison.work if divided else comparison.kernel
    labels = tuple(_labels(side, key) for side in (view.a, view.b))
    number = {label: code for code, label in enumerate(dict.fromkeys((*labels[0], *labels[1])))}
    codes = tuple(np.fromiter(map(number.__getitem__, each), np.int64, len(each)) for each in labels)
    columns = [_columns(side) for side in (view.a, view.b)]
    parts = [_parts(one, code, len(number)) for one, code in zip(columns, codes, strict=True)]
    spent = [_summed(code, one.seconds, len(number)) for one, code in zip(columns, codes, strict=True)]
    seconds = spent[0] - spent[1]
    splits = _splits(columns, codes, seconds)
    intervals = _intervals((view.a, view.b), codes, len(number))
    found = [
        Row(label, (parts[0][code], parts[1][code]), float(seconds[code]), intervals[code], splits[code])
        for label, code in number.items()
    ]
    return tuple(sorted(found, key=_size))


def whole(comparison: Comparison) -> Split | None:
    """The split of busy_A - busy_B, of the same work wherever it is in either run; None where a device has no ceilings.

    Rows hold work against that of the same row alone, so that theirs may have more of `other`.
    """
    sides = comparison.work.a, comparison.work.b
    columns = [_columns(side) for side in sides]
    seconds = np.asarray([sides[0].seconds.sum() - sides[1].seconds.sum()])
    return _splits(columns, [np.zeros(len(one.weight), np.int64) for one in columns], seconds)[0]


def _size(row: Row) -> tuple[float, float, str]:
    """The largest difference first; of rows that differ by rounding alone, the longest."""
    apart = abs(row.seconds)
    longest = max(part.seconds for part in row.parts if part is not None)
    return -apart if apart > statistics.ROUNDING * longest else 0.0, -longest, row.label


def _labels(side: Side, key: str) -> Sequence[str]:
    some = side.segments
    if key in ("class", "group"):
        names = CLASSES if key == "class" else tuple(GROUP_OF[name] for name in CLASSES)
        return [names[code] for code in some.op_class.tolist()]
    if key in ("phase", "block"):
        return [getattr(place, key) for place in some.places]
    of = side.analysis.labels(key)
    return [of[op] for op in some.op.tolist()]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The segments of a run: how much of an op each is, its times [s], and what its work is the same as.

    seconds: share time, own: own time. work: None where its floor is not known. has_ceilings: whether the device of the
    run has any.
    """

    weight: Array
    launches: Array
    seconds: Array
    own: Array
    floor: Array
    reach: Array
    work: list[Hashable]
    has_ceilings: bool


def _columns(side: Side) -> _Columns:
    some = side.segments
    return _Columns(
        weight=some.weight,
        launches=some.launches,
        seconds=side.seconds,
        own=side.own,
        floor=some.floor,
        reach=reach(side),
        work=works(side),
        has_ceilings=bool(side.analysis.device.ceilings),
    )


def _summed(codes: Rows, values: Array, number: int) -> Array:
    """The sum of the values of each code."""
    return np.asarray(np.bincount(codes, values, number), np.float64)


def _parts(one: _Columns, codes: Rows, number: int) -> list[Part | None]:
    columns = (one.weight, one.launches, one.seconds, one.floor, one.reach)
    sums = zip(*(_summed(codes, column, number).tolist() for column in columns), strict=True)
    there = (np.bincount(codes, minlength=number) > 0).tolist()
    return [
        Part(ops, kernels, seconds, (low, high)) if some else None
        for some, (ops, kernels, seconds, low, high) in zip(there, sums, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Works:
    """What a run does of each work: how often, the own times, shares and both ends of the floors together [s]."""

    often: Array
    own: Array
    seconds: Array
    floors: tuple[Array, Array]


def _splits(columns: Sequence[_Columns], codes: Sequence[Rows], seconds: Array) -> list[Split | None]:
    """The split of each row; None for all where a device has no ceilings."""
    if not all(one.has_ceilings for one in columns):
        return [None] * len(seconds)
    numbers: dict[tuple[int, Hashable], int] = {}
    groups = [
        np.asarray(
            [
                -1 if work is None else numbers.setdefault((row, work), len(numbers))
                for row, work in zip(code.tolist(), one.work, strict=True)
            ],
            np.int64,
        )
        for code, one in zip(codes, columns, strict=True)
    ]
    row = np.fromiter((row for row, _ in numbers), np.int64, len(numbers))
    a, b = (_done(one, group, len(numbers)) for one, group in zip(columns, groups, strict=True))
    both = (a.often > 0) & (b.often > 0)
    mean = np.where(both, (a.often + b.often) / 2, 0.0)

    # Where a run took no time at all for a work, none of it ran beside others.
    share = sum(np.divide(of.seconds, of.own, out=np.ones(len(numbers)), where=of.own > 0) for of in (a, b)) / 2

    def each(one: Array, often: Array) -> Array:
        """Of one op of each work [s]."""
        return np.divide(one, often, out=np.zeros(len(numbers)), where=both)

    def summed(one: Array) -> Array:
        """What one op of each work differs by, as often as the runs have it in the mean, by row: of the step [s]."""
        return _summed(row, one * mean * share, len(seconds))

    own = each(a.own, a.often), each(b.own, b.often)
    same = summed(own[0] - own[1])
    low, high = (
        summed(by_ceilings(each(a.floors[end], a.often), own[0], each(b.floors[end], b.often), own[1], scaled=end == 1))
        for end in (0, 1)
    )
    parts = zip(*(column.tolist() for column in (low, high, same - low, same - high, seconds - same)), strict=True)
    return [
        Split((of_low, of_high), (left_low, left_high), rest) for of_low, of_high, left_low, left_high, rest in parts
    ]


def _done(one: _Columns, group: Rows, number: int) -> _Works:
    known = np.flatnonzero(group >= 0)
    often, own, seconds, low, high = (
        _summed(group[known], column[known], number)
        for column in (one.weight, one.own, one.seconds, one.floor, one.reach)
    )
    return _Works(often, own, seconds, (low, high))


def _intervals(sides: Sequence[Side], codes: Sequence[Rows], number: int) -> list[Interval | None]:
    """The 95 % interval of A - B of each row; None for all where a run has too few steps."""
    if not all(side.resamples.enough for side in sides):
        return [None] * number
    found: list[Interval | None] = []
    sums = [_by_step(side, code, number) for side, code in zip(sides, codes, strict=True)]
    for low in range(0, number, _CHUNK):
        drawn = np.zeros((min(_CHUNK, number - low), 1))
        for (own, overlap), side, sign in zip(sums, sides, (1, -1), strict=True):
            here = slice(low, low + _CHUNK)
            times = own[here] @ side.resamples.steps.T - overlap[here, None]
            drawn = drawn + sign * side.resamples.scale * times
        ends = np.percentile(drawn, (2.5, 97.5), axis=1)
        found += zip(ends[0].tolist(), ends[1].tolist(), strict=True)
    return found


def _by_step(side: Side, codes: Rows, number: int) -> tuple[Array, Array]:
    """Own time of each row in each profiled step, shape (number, steps), and its overlap, unscaled [s]."""
    own = np.zeros((number, side.segments.own.shape[1]))
    for step in range(own.shape[1]):
        own[:, step] = _summed(codes, side.segments.own[:, step], number)
    return own, _summed(codes, side.segments.overlap, number)
