"""Match the segments of two runs that are the same work (docs/explaining.md#how-ops-are-matched).

Contractions and attention of equal work are the anchors, in the order of dispatch. What lies between two anchors is one
*stretch*, in which other ops are matched too; in runs of different frameworks a stretch is what one phase and block
has. What is left of it in either run is one `UnmatchedStretch`.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from roofline.comparison.conservation import is_recomputed
from roofline.comparison.segments import MOST_SEGMENTS, Segments
from roofline.core.arrays import Rows
from roofline.core.vocabulary import PRODUCTS

#: What stands in the name of an op of TensorFlow between the op and those that were taken into it.
_FUSED_WITH = " + "
#: Products that only one run has, up to which the order of the others is followed exactly: the ways there are half of
#: the square of them, which bounds time and memory.
_MOST_DIFFERENCES = math.isqrt(2 * MOST_SEGMENTS)

#: Of each segment of a run, what one of the other run must have in common with it; None: it has no partner.
_Keys = Sequence[Hashable]
_Key = TypeVar("_Key", bound=Hashable)
_Pairs = list[tuple[int, int]]
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
    runs = (a, b)
    common = _common_blocks(a, b)
    # Where two authors called the parts of their models differently, a name says nothing of what is the same.
    by_block = len(common) == len({place.block for place in (*a.places, *b.places)})
    names = [_names(run, by_block) for run in runs]
    works, anywhere = ([_works(run, blocks) for run in runs] for blocks in (common, frozenset[str]()))
    # In another type the same is dispatched all the same; and in pieces, a loop over heads, samples or slices, or with
    # other ops taken into it.
    alike = any(
        _have_most_in_common(runs, [_names(run, by_block, typed, shaped) for run in runs])
        for typed, shaped in ((True, True), (False, True), (False, False))
    )
    pairs = _anchors(runs, list(map(_of_products, runs, names)) if alike else works)
    stretches = [
        np.searchsorted([pair[side] for pair in pairs], np.arange(len(run))).tolist() for side, run in enumerate(runs)
    ]
    # Compilers and schedulers move products about: those of equal FLOPs are the same work wherever they stand.
    rounds = [works, anywhere]
    if alike:
        rounds = [[_within(*side) for side in zip(stretches, keys, strict=True)] for keys in (names, works)] + rounds
        if any((run.times > 1).any() for run in runs):  # in which order a step repeats its ops is not known
            rounds.append(names)
    for keys in rounds:
        pairs = pairs + _pair_rest(keys, pairs)
    labels = [_labels(run, stretch if alike else None, common) for run, stretch in zip(runs, stretches, strict=True)]
    if alike:
        # A program may prepare all operands and then use them, or each right before its use. What both runs have left
        # in one stretch is two ways to do the same there, and stays.
        common_stretches = set.intersection(*(set(stretch) for stretch in _rest(labels, pairs))) - {None}
        elsewhere = [
            [None if label in common_stretches else key for label, key in zip(*side, strict=True)]
            for side in zip(labels, names, strict=True)
        ]
        pairs = pairs + _pair_rest(elsewhere, pairs)
        pairs = pairs + _of_lone_stretches(_rest(labels, pairs), list(map(_ops, runs)))
    first, second = np.asarray(pairs, np.int64).reshape(-1, 2).T
    return Matching(first, second, _unmatched(_rest(labels, pairs)), alike)


def _common_blocks(a: Segments, b: Segments) -> frozenset[str]:
    """Return the blocks that both runs have; none where most of the equal products stand in blocks of other names.

    Then these two authors mean different parts by the same names.
    """
    common = frozenset(place.block for place in a.places) & frozenset(place.block for place in b.places)
    anchors = _in_order(*(_of_products(run, _names(run, by_block=False)) for run in (a, b)))
    blocks = [(a.places[row].block, b.places[partner].block) for row, partner in anchors]
    equal = [block == partner for block, partner in blocks if block in common and partner in common]
    return common if 2 * sum(equal) >= len(equal) else frozenset()


def _have_most_in_common(runs: Sequence[Segments], keys: Sequence[_Keys]) -> bool:
    """Return whether equal keys have half of the segments of the shorter run, or half of the time of either."""
    pairs = by_occurrence(*keys)
    if 2 * len(pairs) >= min(map(len, runs)) > 0:
        return True
    paired = np.asarray(pairs, np.int64).reshape(-1, 2).T
    times = [(run.own[rows].sum(), run.own.sum()) for run, rows in zip(runs, paired, strict=True)]
    return any(2 * alike >= total > 0 for alike, total in times)


def _of_products(segments: Segments, keys: _Keys) -> list[Hashable]:
    return [key if place.op_class in PRODUCTS else None for place, key in zip(segments.places, keys, strict=True)]


def _anchors(runs: Sequence[Segments], keys: Sequence[_Keys]) -> _Pairs:
    """Pair products of equal keys in order: those at places that both runs have first, then any between these.

    Else of products of equal shapes one is taken for the next, as a projection of attention for another one that a
    compiler did not merge.
    """
    scoped = [list(zip(run.scope, of_run, strict=True)) for run, of_run in zip(runs, keys, strict=True)]
    common = set.intersection(*({scope for scope, key in of_run if key} for of_run in scoped)) - {""}
    pairs = _in_order(*([pair if pair[1] and pair[0] in common else None for pair in of_run] for of_run in scoped))
    stretches = list(pairwise([(-1, -1), *pairs, (len(keys[0]), len(keys[1]))]))
    for (row, partner), (end, partner_end) in stretches:
        inner_pairs = _in_order(keys[0][row + 1 : end], keys[1][partner + 1 : partner_end])
        pairs += [(row + 1 + first, partner + 1 + second) for first, second in inner_pairs]
    return sorted(pairs)


def _within(stretches: Sequence[int], keys: _Keys) -> list[Hashable]:
    """Make keys that are equal only within one stretch."""
    return [None if key is None else (stretch, key) for stretch, key in zip(stretches, keys, strict=True)]


def _names(segments: Segments, by_block: bool, typed: bool = True, shaped: bool = True) -> list[Hashable]:
    """Make keys of what was dispatched, and where: the class of an op is another one in the optimizer."""
    rows = zip(segments.places, _ops(segments, typed, shaped), strict=True)
    return [(place.phase, place.block if by_block else None, place.op_class, op) for place, op in rows]


def _ops(segments: Segments, typed: bool = True, shaped: bool = True) -> list[Hashable]:
    """Make keys of names and arguments, of the op and of the segment.

    A constituent of a fused kernel is like the same constituent of an equal kernel, and like no op that runs alone.
    """
    return [
        (
            part.name if shaped else part.name.partition(_FUSED_WITH)[0],
            part.shapes if shaped else None,
            part.dtype if typed else None,
            (op.name, op.shapes) if fused else None,
        )
        for part, op, fused in zip(segments.signature, segments.op_signature, segments.fused.tolist(), strict=True)
    ]


def _works(segments: Segments, common: frozenset[str]) -> list[Hashable]:
    """Make keys of what contractions have in common in all frameworks: phase, block, class and FLOPs.

    common: blocks that both runs have; the names of others are left out.
    """
    # A product that is computed again is no partner of one that was asked for.
    repeated = is_recomputed(segments, np.arange(len(segments))).tolist()
    flops = np.where(np.nan_to_num(segments.model_flops) > 0, segments.model_flops, np.nan_to_num(segments.flops))
    keys: list[Hashable] = [
        (place.phase, place.block if place.block in common else "", place.op_class, work, done_again) if work else None
        for place, work, done_again in zip(segments.places, flops.tolist(), repeated, strict=True)
    ]
    return _of_products(segments, keys)


def by_occurrence(a: _Keys, b: _Keys) -> _Pairs:
    """Pair equal keys, the first with the first, in the order of `a`; None has no partner."""
    waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for number, key in enumerate(b):
        waiting[key].append(number)
    return [(number, waiting[key].popleft()) for number, key in enumerate(a) if key is not None and waiting[key]]


def _rest(keys: Sequence[Sequence[_Key]], pairs: _Pairs) -> list[list[_Key | None]]:
    """Return the keys of what is in no pair, else None, in both runs."""
    paired_rows = [{pair[side] for pair in pairs} for side in (0, 1)]
    return [[None if row in paired_rows[side] else key for row, key in enumerate(keys[side])] for side in (0, 1)]


def _pair_rest(keys: Sequence[_Keys], pairs: _Pairs) -> _Pairs:
    """Pair equal keys of what is in no pair yet."""
    return by_occurrence(*_rest(keys, pairs))


def _in_order(a: _Keys, b: _Keys) -> _Pairs:
    """Return the most pairs of equal keys that stand in the same order in both: a longest common subsequence.

    By the greedy algorithm of E. W. Myers, "An O(ND) difference algorithm and its variations", Algorithmica 1 (1986):
    as many rounds as keys differ. Past `_MOST_DIFFERENCES` the runs have little in common, and equal keys are paired
    as they come.
    """
    if (len(a), list(map(repr, a))) > (len(b), list(map(repr, b))):  # of several such sequences, the same for B and A
        return [(row, partner) for partner, row in _in_order(b, a)]
    rows = [[number for number, key in enumerate(keys) if key is not None] for keys in (a, b)]
    # Numbers compare faster than keys of many parts.
    numbers = {key: number for number, key in enumerate(dict.fromkeys((*a, *b)))}
    x, y = ([numbers[keys[row]] for row in chosen] for keys, chosen in zip((a, b), rows, strict=True))
    of_x, of_y = len(x), len(y)
    # Runs of equal keys: the diagonal i - j, both ends in x, and which one was before it; -1: none.
    snakes: list[tuple[int, int, int, int]] = []
    # On each diagonal, how far along x one gets, and the last run of equal keys on the way.
    furthest = {1: (0, -1)}
    for differences in range(min(of_x + of_y, _MOST_DIFFERENCES) + 1):
        for diagonal in range(-differences, differences + 1, 2):
            down = diagonal == -differences or (
                diagonal != differences and furthest[diagonal - 1][0] < furthest[diagonal + 1][0]
            )
            start, last = furthest[diagonal + 1 if down else diagonal - 1]
            start = end = start if down else start + 1
            while end < of_x and end - diagonal < of_y and x[end] == y[end - diagonal]:
                end += 1
            if end > start:
                snakes.append((diagonal, start, end, last))
                last = len(snakes) - 1
            furthest[diagonal] = end, last
            if end >= of_x and end - diagonal >= of_y:
                pairs = []
                while last >= 0:
                    diagonal, start, end, last = snakes[last]
                    pairs += [(rows[0][i], rows[1][i - diagonal]) for i in reversed(range(start, end))]
                return pairs[::-1]
    increasing: _Pairs = []
    for pair in by_occurrence(a, b):
        if not increasing or pair[1] > increasing[-1][1]:
            increasing.append(pair)
    return increasing


def _labels(segments: Segments, stretches: Sequence[int] | None, common: frozenset[str]) -> list[_Label]:
    """Label each segment. The optimizer has no anchors and no shared blocks: it is one stretch."""
    labels: list[_Label] = [(place.phase, 0, "") for place in segments.places]
    for row, (place, (phase, _, _)) in enumerate(zip(segments.places, labels, strict=True)):
        if phase != "optimizer":
            block = place.block if stretches is None and place.block in common else ""
            labels[row] = phase, 0 if stretches is None else stretches[row], block
    return labels


def _of_lone_stretches(labels: Sequence[Sequence[_Label | None]], ops: Sequence[_Keys]) -> _Pairs:
    """Pair what one run alone has left in a stretch where the other run has all of it in other phases.

    As an update that one run computes in its backward pass. The smallest stretch first, so that it finds its own.
    """
    stretches: list[defaultdict[_Label, list[int]]] = [defaultdict(list), defaultdict(list)]
    phases: list[defaultdict[Hashable, dict[int, str]]] = [defaultdict(dict), defaultdict(dict)]  # of what is left
    for side, of_run in enumerate(labels):
        for row, label in enumerate(of_run):
            if label is not None:
                stretches[side][label].append(row)
                phases[side][ops[side][row]][row] = label[0]
    lone = [(len(rows), label, side) for side in (0, 1) for label, rows in stretches[side].items()]
    pairs: _Pairs = []
    for _, label, side in sorted(entry for entry in lone if entry[1] not in stretches[1 - entry[2]]):
        rows = [(row, ops[side][row]) for row in stretches[side][label]]
        own_phases, other_phases, keys = phases[side], phases[1 - side], {op for _, op in rows}
        elsewhere = {op: iter([row for row, phase in other_phases[op].items() if phase != label[0]]) for op in keys}
        partners = [next(elsewhere[op], -1) for _, op in rows]
        if -1 not in partners and all(row in own_phases[op] for row, op in rows):
            for (row, op), partner in zip(rows, partners, strict=True):
                del own_phases[op][row], other_phases[op][partner]
                pairs.append((row, partner) if side == 0 else (partner, row))
    return pairs


def _unmatched(labels: Sequence[Sequence[_Label | None]]) -> tuple[UnmatchedStretch, ...]:
    """Group segments by label; None: matched."""
    rows: dict[_Label, tuple[list[int], list[int]]] = {}
    for side, of_run in enumerate(labels):
        for row, label in enumerate(of_run):
            if label is not None:
                rows.setdefault(label, ([], []))[side].append(row)
    # In an order that does not hang on which run is A: the first of two stretches gets what both could have.
    return tuple(
        UnmatchedStretch(label[0], *(np.asarray(side, np.int64) for side in rows[label])) for label in sorted(rows)
    )
