"""One op that takes longer while others of its kind do not: no machine that was slower, and no other process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from roofline.comparison.arrays import Array, Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Rule
from roofline.comparison.causes.claim import MATERIAL, OP, Claim
from roofline.comparison.causes.select import VECTOR, pairs_of
from roofline.comparison.causes.tendencies import DOUBTS
from roofline.core import statistics
from roofline.core.schema import Signature, slug
from roofline.core.vocabulary import PRODUCTS

#: So many other ops of a kind tell how far ops of two processes lie apart. By definition: one has no spread.
_FEWEST = 2
#: A resample of steps in which an op of few of them took no time has no logarithm. By choice, below any clock [s].
_LEAST = 1e-12
#: What either end of an interval of 95 % leaves out, by definition.
_TAIL = 0.025


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Of equal ops, by name and arguments, those that stand out from the others of their kind, as `efficiency`.

    Updates of an optimizer are of no kind here: they walk through all weights, which nothing beside them does.

    How far ops differ in what they take longer from one process to another is told by the other ops of these two runs,
    in logarithms: an op stands out that is no draw of the same distribution, at 95 % for all of them together
    (Student's t), in the resamples of the steps as well, and by as much of the longer step as a finding has to be.
    """
    comparison = attribution.comparison
    flags = {slug(flag) for run in (comparison.a, comparison.b) for flag in run.flags}
    if (
        comparison.hardware_differs
        or flags & DOUBTS
        or not (attribution.a.resamples.enough and attribution.b.resamples.enough)
    ):
        return
    sides = attribution.a, attribution.b
    for kind, classes in (("products", PRODUCTS), ("others", VECTOR)):
        found = _by_op(attribution, *pairs_of(attribution, classes))
        times = [
            [np.maximum(side.drawn_own(rows), _LEAST) for side, rows in zip(sides, each, strict=True)]
            for each in found.values()
        ]
        own = [(float(attribution.a.own[a].sum()), float(attribution.b.own[b].sum())) for a, b in found.values()]
        if len(found) <= _FEWEST:
            continue
        ratios = np.log([one / other for one, other in own])
        drawn = np.log([one / other for one, other in times])
        for number, (label, (a, b)) in enumerate(found.items()):
            usual = _usual(ratios, drawn, number)
            if usual is not None and abs(own[number][0] - own[number][1] * usual) >= MATERIAL * attribution.wall:
                yield Claim("efficiency", a, b, about={"of": kind, OP: label})


def _by_op(attribution: Attribution, a: Rows, b: Rows) -> dict[str, tuple[Rows, Rows]]:
    """Matched segments that take time in both runs, of which nothing is claimed, by name and arguments of both."""
    some, other = attribution.a.segments, attribution.b.segments
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    timed = (attribution.a.own[a] > 0) & (attribution.b.own[b] > 0)
    timed &= (attribution.left_a[a] == 1) & (attribution.left_b[b] == 1)
    for row, partner in zip(a[timed].tolist(), b[timed].tolist(), strict=True):
        one, equal = some.signature[row], other.signature[partner]
        if _same(one, equal):
            found[f"{one.name} {one.shapes}".strip()].append((row, partner))
    return {label: tuple(np.asarray(pairs, np.int64).T) for label, pairs in found.items()}


def _same(one: Signature, other: Signature) -> bool:
    """Whether two ops do the same: by name and arguments, and to as many results, as a gradient may leave some out."""
    works = [(op.name, op.shapes, op.dtype, op.cost.flops, op.writes) for op in (one, other)]
    return works[0] == works[1]


def _usual(ratios: Array, drawn: Array, number: int) -> float | None:
    """How many times as long the others take where an op stands out from them; None where it does not."""
    others = np.delete(ratios, number)
    apart, count = ratios[number] - others.mean(), len(others)
    tail = _TAIL / len(ratios)
    draws = statistics.generator().standard_t(count - 1, 10 * statistics.RESAMPLES)
    reach = float(np.percentile(np.abs(draws), 100 * (1 - 2 * tail))) * others.std(ddof=1) * np.sqrt(1 + 1 / count)
    low, high = np.percentile(drawn[number] - np.delete(drawn, number, axis=0).mean(axis=0), (2.5, 97.5))
    return float(np.exp(others.mean())) if abs(apart) > reach and low * high > 0 else None


RULE = Rule(name="slower-op", claim=claim, after=("unknown-device",), before=("efficiency",))
