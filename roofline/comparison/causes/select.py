"""Which pieces of two runs a rule is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from roofline.comparison.causes.attribution import Ledger
from roofline.comparison.causes.claim import Bools, Rows
from roofline.comparison.segments import Pieces
from roofline.core.vocabulary import CLASSES

#: Work that a compiler takes together into fused kernels.
VECTOR = frozenset(("normalisation", "softmax", "reduction", "pointwise", "random", "movement", "embedding", "other"))


def of_phase(some: Pieces, phase: str) -> Bools:
    """Which pieces are of a phase."""
    return np.asarray([place.phase == phase for place in some.places], bool)


def of_classes(some: Pieces, classes: frozenset[str] | set[str]) -> Bools:
    """Which pieces are of some classes."""
    return np.isin(some.op_class, [CLASSES.index(name) for name in CLASSES if name in classes])


def are(some: Pieces, rows: Rows, classes: frozenset[str] | set[str]) -> Bools:
    """Which of some pieces are of some classes."""
    return np.isin(some.op_class[rows], [CLASSES.index(name) for name in CLASSES if name in classes])


def both(ledger: Ledger) -> tuple[Pieces, Pieces]:
    """The pieces of A and of B."""
    return ledger.a.pieces, ledger.b.pieces


def left(ledger: Ledger, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The pieces of some classes that are not claimed in full, with a partner or without."""
    return ledger.rows(lambda some: of_classes(some, classes))


def pairs_of(ledger: Ledger, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The matched pieces of some classes that are not claimed in full."""
    pairs = ledger.matching
    chosen = are(ledger.a.pieces, pairs.pairs_a, classes) & are(ledger.b.pieces, pairs.pairs_b, classes)
    return ledger.free(pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def first_time(ledger: Ledger, side: int, again: Rows) -> tuple[Rows, Rows]:
    """The matched pieces with which run A (0) or B (1) did in the forward pass, in the same block, what it does again.

    Only where half of its kind there or more are done again: of equal layers of which a few are, nobody knows which.
    """
    pairs = ledger.matching.pairs_a, ledger.matching.pairs_b
    some = both(ledger)[side]

    def what(row: int) -> tuple[str, str, str]:
        return some.signature[row].name, some.signature[row].shapes, some.places[row].block

    forward = np.flatnonzero(of_phase(some, "forward")[pairs[side]])
    firsts = [what(row) for row in pairs[side][forward].tolist()]
    times, there = Counter(what(row) for row in again.tolist()), Counter(firsts)
    chosen = forward[np.asarray([there[one] <= 2 * times[one] for one in firsts], bool)]
    return pairs[0][chosen], pairs[1][chosen]


def only_one_does(ledger: Ledger, op_class: str) -> Iterator[tuple[Rows, Rows]]:
    """Stretches that only one run has, with an op of some class in them: (pieces of A, of B), one of them empty.

    Vector work only, and only where both runs dispatch alike: elsewhere a stretch is no unit.
    """
    for hunk in ledger.matching.hunks if ledger.matching.alike else ():
        a, b = ledger.free(hunk.a, hunk.b)
        rows, some = (a, ledger.a.pieces) if len(a) else (b, ledger.b.pieces)
        classes = classes_of(some, rows)
        if (not len(a) or not len(b)) and op_class in classes and classes <= VECTOR | {op_class}:
            yield a, b


def classes_of(some: Pieces, rows: Rows) -> set[str]:
    """The classes of some pieces."""
    return {some.places[row].op_class for row in rows}


def blocks_with(some: Pieces, rows: Rows, classes: frozenset[str]) -> set[str]:
    """The blocks in which some of the pieces are of some classes."""
    return {some.places[row].block for row in rows if some.places[row].op_class in classes}
