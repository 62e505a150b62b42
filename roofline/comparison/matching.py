"""Which segments of two runs are the same work, and what only one of them does between its neighbours.

Contractions are what every framework does alike: in the order of dispatch, those with equal FLOPs are the anchors. What
lies between two anchors is one *stretch*, in which ops with the same name and arguments are matched too. The rest of a
stretch is what one run does instead of the other: one `UnmatchedStretch`, as in a diff of two texts.

Runs of different frameworks share few names, and their compilers move work past the anchors. There a stretch is
the unmatched segments of one phase and block.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from roofline.comparison.arrays import Rows
from roofline.comparison.conservation import again
from roofline.comparison.segments import MOST_SEGMENTS, Segments
from roofline.core.vocabulary import PRODUCTS

#: What stands in the name of an op of TensorFlow between the op and those that were taken into it.
_FUSED_WITH = " + "
#: Products that only one run has, up to which the order of the others is followed exactly: the ways there are half of
#: the square of them, which bounds time and memory.
_MOST_DIFFERENCES = math.isqrt(2 * MOST_SEGMENTS)

#: Where a segment stands: its phase, and there its stretch, or its block in runs of different frameworks.
_Label = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class UnmatchedStretch:
    """Segments that have no partner, by number: what A does here, and what B does instead. All of one phase."""

    phase: str
    a: Rows
    b: Rows


@dataclass(frozen=True, slots=True)
class Matching:
    """pairs_a, pairs_b: matched segments, by number. alike: whether both runs dispatch the same ops by and large."""

    pairs_a: Rows
    pairs_b: Rows
    unmatched: tuple[UnmatchedStretch, ...]
    alike: bool


def match(a: Segments, b: Segments) -> Matching:
    """Match the segments of two runs, each at most once."""
    common = _common_blocks(a, b)
    by_block = len(common) == len({place.block for place in (*a.places, *b.places)})
    names = _names(a, by_block), _names(b, by_block)
    # Where two authors called the parts of their models differently, a name says nothing of what is the same.
    works, anywhere = (_works(a, common), _works(b, common)), (_works(a, frozenset()), _works(b, frozenset()))
    # In another type the same is dispatched all the same; and in pieces, a loop over heads, samples or slices, or with
    # other ops taken into it.
    alike = any(
        _mostly((a, b), *(_names(some, by_block, typed, shaped) for some in (a, b)))
        for typed, shaped in ((True, True), (False, True), (False, False))
    )
    anchors = _in_order(*((_of_anchors(a, names[0]), _of_anchors(b, names[1])) if alike else works))
    stretches = [
        np.searchsorted(np.asarray([pair[side] for pair in anchors], np.int64), np.arange(len(segments)))
        for side, segments in ((0, a), (1, b))
    ]
    pairs = anchors
    # Compilers and schedulers move products about: those of equal FLOPs are the same work wherever they stand.
    rounds: list[Sequence[Sequence[Hashable]]] = [works, anywhere]
    if alike:
        inside = ([_inside(*both) for both in zip(keys, stretches, strict=True)] for keys in (names, works))
        rounds = [*inside, works, anywhere]
        if (
            max(a.times.max(initial=1), b.times.max(initial=1)) > 1
        ):  # in which order a step repeats its ops is not known
            rounds.append(names)
    for keys in rounds:
        taken = _sets(pairs)
        free = [[None if row in taken[side] else key for row, key in enumerate(keys[side])] for side in (0, 1)]
        pairs = pairs + by_occurrence(*free)
    labels = [
        _labels(segments, stretch if alike else None, common)
        for segments, stretch in zip((a, b), stretches, strict=True)
    ]
    if alike:
        pairs = pairs + _moved(names, labels, _sets(pairs))
    first, second = (np.asarray([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    return Matching(first, second, _unmatched(labels, _sets(pairs)), alike)


def _common_blocks(a: Segments, b: Segments) -> frozenset[str]:
    """The blocks that both runs have; none where most of the equal products stand in blocks of other names.

    Then these two authors mean different parts by the same names.
    """
    common = frozenset(place.block for place in a.places) & frozenset(place.block for place in b.places)
    anchors = _in_order(*(_of_anchors(some, _names(some, by_block=False)) for some in (a, b)))
    there = [(a.places[one].block, b.places[other].block) for one, other in anchors]
    told = [one == other for one, other in there if one in common and other in common]
    return common if 2 * sum(told) >= len(told) else frozenset()


def _moved(
    names: tuple[list[Hashable], list[Hashable]],
    labels: list[list[_Label]],
    taken: tuple[set[int], set[int]],
) -> list[tuple[int, int]]:
    """Pairs of what A does before an anchor and B after it: equal ops of stretches where one run alone has some left.

    A program may prepare all operands and then use them, or each right before its use. What both runs have left in one
    stretch is two ways to do the same there, and stays.
    """
    stretches = [{label for row, label in enumerate(labels[side]) if row not in taken[side]} for side in (0, 1)]
    both = stretches[0] & stretches[1]
    free = [
        [None if row in taken[side] or labels[side][row] in both else key for row, key in enumerate(names[side])]
        for side in (0, 1)
    ]
    return by_occurrence(*free)


def _mostly(runs: tuple[Segments, Segments], a: Sequence[Hashable], b: Sequence[Hashable]) -> bool:
    """Return whether equal keys have half of the segments of the shorter run, or half of the time of either."""
    pairs = by_occurrence(a, b)
    if 2 * len(pairs) >= min(len(a), len(b)) > 0:
        return True
    paired = np.asarray(pairs, np.int64).reshape(-1, 2).T
    times = [(run.own[rows].sum(), run.own.sum()) for run, rows in zip(runs, paired, strict=True)]
    return any(2 * alike >= whole > 0 for alike, whole in times)


def _of_anchors(segments: Segments, keys: Sequence[Hashable]) -> list[Hashable]:
    return [key if place.op_class in PRODUCTS else None for place, key in zip(segments.places, keys, strict=True)]


def _inside(keys: Sequence[Hashable], stretch: Rows) -> list[Hashable]:
    """Keys that are equal only within one stretch."""
    return [None if key is None else (int(at), key) for key, at in zip(keys, stretch, strict=True)]


def _names(segments: Segments, by_block: bool, typed: bool = True, shaped: bool = True) -> list[Hashable]:
    """What segments have in common that were dispatched alike: names and arguments, of the op and of the segment.

    A constituent of a fused kernel is like the same constituent of an equal kernel, and like no op that runs alone.
    """
    rows = zip(segments.places, segments.signature, segments.whole, segments.fused, strict=True)
    return [
        (
            place.phase,
            place.block if by_block else None,
            place.op_class,
            one.name if shaped else one.name.partition(_FUSED_WITH)[0],
            one.shapes if shaped else None,
            one.dtype if typed else None,
            (op.name, op.shapes) if fused else None,
        )
        for place, one, op, fused in rows
    ]


def _works(segments: Segments, common: frozenset[str]) -> list[Hashable]:
    """What contractions have in common in all frameworks: phase, block, class and FLOPs; None for other ops.

    common: blocks that both runs have; the names of others are left out.
    """
    found: list[Hashable] = []
    # A product that is computed again is no partner of one that was asked for.
    repeated = again(segments, np.arange(len(segments))).tolist()
    work = np.where(
        np.nan_to_num(segments.model_flops) > 0, segments.model_flops, np.nan_to_num(segments.flops)
    ).tolist()
    for place, flops, done_again in zip(segments.places, work, repeated, strict=True):
        block = place.block if place.block in common else ""
        key = place.phase, block, place.op_class, flops, done_again
        found.append(key if place.op_class in PRODUCTS and flops else None)
    return found


def by_occurrence(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of equal keys, the first with the first, in the order of `a`; None has no partner."""
    waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for number, key in enumerate(b):
        waiting[key].append(number)
    return [(number, waiting[key].popleft()) for number, key in enumerate(a) if key is not None and waiting[key]]


def _in_order(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The most pairs of equal keys that stand in the same order in both: a longest common subsequence.

    By the greedy algorithm of E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1 (1986):
    as many rounds as keys differ. Past `_MOST_DIFFERENCES` the runs have little in common, and equal keys are paired
    as they come.
    """
    if (len(a), list(map(repr, a))) > (len(b), list(map(repr, b))):  # of several such sequences, the same for B and A
        return [(one, other) for other, one in _in_order(b, a)]
    rows = [[number for number, key in enumerate(keys) if key is not None] for keys in (a, b)]
    x, y = ([keys[row] for row in chosen] for keys, chosen in zip((a, b), rows, strict=True))
    furthest = {1: 0}  # on each diagonal i - j, how far along x one gets
    history = []
    for differences in range(min(len(x) + len(y), _MOST_DIFFERENCES) + 1):
        history.append(dict(furthest))
        for diagonal in range(-differences, differences + 1, 2):
            down = diagonal == -differences or (
                diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            i = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            while i < len(x) and i - diagonal < len(y) and x[i] == y[i - diagonal]:
                i += 1
            furthest[diagonal] = i
            if i >= len(x) and i - diagonal >= len(y):
                return [(rows[0][i], rows[1][j]) for i, j in _way_back(history, len(x), len(y))]
    return _increasing(by_occurrence(a, b))


def _way_back(history: list[dict[int, int]], i: int, j: int) -> list[tuple[int, int]]:
    """The pairs on the way that `_in_order` went, from its end to its beginning."""
    pairs = []
    for differences in range(len(history) - 1, -1, -1):
        furthest, diagonal = history[differences], i - j
        down = diagonal == -differences or (diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        end = furthest[before] if differences else 0
        start = end if down else end + 1
        while i > (start if differences else 0) and j > 0:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        i, j = end, end - before
    return pairs[::-1]


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of the pairs, taken from the first on, that stand in the same order in both runs."""
    found: list[tuple[int, int]] = []
    for one, other in pairs:
        if not found or other > found[-1][1]:
            found.append((one, other))
    return found


def _sets(pairs: Sequence[tuple[int, int]]) -> tuple[set[int], set[int]]:
    return {one for one, _ in pairs}, {other for _, other in pairs}


def _labels(segments: Segments, stretch: Rows | None, common: frozenset[str]) -> list[_Label]:
    """The label of each segment. The optimizer has no anchors and no shared blocks: it is one stretch."""

    def label(row: int, phase: str, block: str) -> _Label:
        if phase == "optimizer":
            return phase, 0, ""
        if stretch is None:
            return phase, 0, block if block in common else ""
        return phase, int(stretch[row]), ""

    return [label(row, place.phase, place.block) for row, place in enumerate(segments.places)]


def _unmatched(labels: list[list[_Label]], taken: tuple[set[int], set[int]]) -> tuple[UnmatchedStretch, ...]:
    rows: dict[_Label, tuple[list[int], list[int]]] = {}
    for side in (0, 1):
        for row, label in enumerate(labels[side]):
            if row not in taken[side]:
                rows.setdefault(label, ([], []))[side].append(row)
    # In an order that does not hang on which run is A: the first of two stretches gets what both could have.
    return tuple(
        UnmatchedStretch(label[0], *(np.asarray(side, np.int64) for side in rows[label])) for label in sorted(rows)
    )
