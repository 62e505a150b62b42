"""Which segments of two runs a rule is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import Bools, Rows
from roofline.comparison.segments import Segments
from roofline.core.vocabulary import CLASSES

#: Work that a compiler takes together into fused kernels.
VECTOR = frozenset(("normalisation", "softmax", "reduction", "pointwise", "random", "movement", "embedding", "other"))


def of_phase(some: Segments, phase: str) -> Bools:
    """Which segments are of a phase."""
    return np.asarray([place.phase == phase for place in some.places], bool)


def of_classes(some: Segments, classes: frozenset[str] | set[str]) -> Bools:
    """Which segments are of some classes."""
    return np.isin(some.op_class, [CLASSES.index(name) for name in CLASSES if name in classes])


def are(some: Segments, rows: Rows, classes: frozenset[str] | set[str]) -> Bools:
    """Which of some segments are of some classes."""
    return np.isin(some.op_class[rows], [CLASSES.index(name) for name in CLASSES if name in classes])


def both(attribution: Attribution) -> tuple[Segments, Segments]:
    """The segments of A and of B."""
    return attribution.a.segments, attribution.b.segments


def left(attribution: Attribution, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The segments of some classes that are not claimed in full, with a partner or without."""
    return attribution.rows(lambda some: of_classes(some, classes))


def pairs_of(attribution: Attribution, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The matched segments of some classes that are not claimed in full."""
    pairs = attribution.matching
    chosen = are(attribution.a.segments, pairs.pairs_a, classes) & are(attribution.b.segments, pairs.pairs_b, classes)
    return attribution.free(pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def first_time(attribution: Attribution, side: int, again: Rows) -> tuple[Rows, Rows]:
    """The matched segments of run A (0) or B (1) that did in the forward pass, in the same block, what it does again.

    Only where half of its kind there or more are done again: of equal layers of which a few are, nobody knows which.
    """
    pairs = attribution.matching.pairs_a, attribution.matching.pairs_b
    some = both(attribution)[side]

    def what(row: int) -> tuple[str, str, str]:
        return some.signature[row].name, some.signature[row].shapes, some.places[row].block

    forward = np.flatnonzero(of_phase(some, "forward")[pairs[side]])
    firsts = [what(row) for row in pairs[side][forward].tolist()]
    times, there = Counter(what(row) for row in again.tolist()), Counter(firsts)
    chosen = forward[np.asarray([there[one] <= 2 * times[one] for one in firsts], bool)]
    return pairs[0][chosen], pairs[1][chosen]


def only_one_does(attribution: Attribution, op_class: str) -> Iterator[tuple[Rows, Rows]]:
    """Stretches that only one run has, with an op of some class in them: (segments of A, of B), one of them empty.

    Vector work only, and only where both runs dispatch alike: elsewhere a stretch is no unit.
    """
    for hunk in attribution.matching.hunks if attribution.matching.alike else ():
        a, b = attribution.free(hunk.a, hunk.b)
        rows, some = (a, attribution.a.segments) if len(a) else (b, attribution.b.segments)
        classes = classes_of(some, rows)
        if (not len(a) or not len(b)) and op_class in classes and classes <= VECTOR | {op_class}:
            yield a, b


def classes_of(some: Segments, rows: Rows) -> set[str]:
    """The classes of some segments."""
    return {some.places[row].op_class for row in rows}


def blocks_with(some: Segments, rows: Rows, classes: frozenset[str]) -> set[str]:
    """The blocks in which some of the segments are of some classes."""
    return {some.places[row].block for row in rows if some.places[row].op_class in classes}
