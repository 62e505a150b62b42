"""The same ops under the ceilings of another device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

import numpy as np

from roofline import units
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim, Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import opening
from roofline.comparison.causes.select import ALL, pairs_of
from roofline.comparison.same_work import by_ceilings, reach, works
from roofline.core.vocabulary import PRODUCTS


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Of matched ops what the devices make of the difference, of each work as the tables tell it (`same_work.py`).

    Matched ops of which one run moves more bytes are no equal work: of these all products, and all others, are one.
    Where the two ends of the floors say that the one device is slower and that the other one is, or that neither is,
    nobody knows which it is, and nothing is claimed; else it is the smaller one. The rest is left to whatever else
    explains it.
    """
    if not attribution.comparison.hardware_differs:
        return
    done, ends = (works(attribution.a), works(attribution.b)), (reach(attribution.a), reach(attribution.b))
    found: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for kind, classes in (("products", PRODUCTS), ("others", ALL - PRODUCTS)):
        for row, partner in zip(*(rows.tolist() for rows in pairs_of(attribution, classes)), strict=True):
            work, other = done[0][row], done[1][partner]
            if work is not None and other is not None:
                found[kind, work if work == other else None].append((row, partner))
    for pairs in found.values():
        yield from _of_ceilings(attribution, ends, *np.asarray(pairs, np.int64).T)


def _of_ceilings(attribution: Attribution, reached: tuple[Array, Array], a: Rows, b: Rows) -> Iterator[Claim]:
    """The ceilings' part of the own times of some pairs, as parts of both. reached: upper ends of all floors [s]."""
    sides = (attribution.a, a), (attribution.b, b)
    floors = [float(side.segments.floor[rows].sum()) for side, rows in sides]
    own = [float(side.own[rows].sum()) for side, rows in sides]
    if not all(floors) or not all(own):
        return
    high = [float(each[rows].sum()) for each, rows in zip(reached, (a, b), strict=True)]
    ends = [
        float(by_ceilings(*(np.asarray(each) for each in (one, own[0], other, own[1])), scaled=scaled))
        for (one, other), scaled in ((floors, False), (high, True))
    ]
    apart = min(ends, key=abs)
    if ends[0] * ends[1] <= 0:
        return
    # Half of it of either run: what A takes more by its ceilings, and B less. Of what runs beside other ops a step has
    # a share, and that share of it.
    yield Claim("hardware", a, b, part_a=apart / 2 / own[0], part_b=-apart / 2 / own[1])


def sentence(facts: Facts) -> str:
    """The floors on both devices."""
    text = f"{opening(facts, 'the same ops')} because of its device: their floors are "
    there, other = (_floor(work) for work in (facts.does_more, facts.does_less))
    return f"{text}{there} there and {other} on the other."


def _floor(work: Work) -> str:
    """The floor, or both of its ends."""
    low, high = units.seconds(work.floor), units.seconds(work.reach)
    return low if low == high else units.seconds_between(work.floor, work.reach)


CAUSE = Cause(
    name="hardware",
    claim=claim,
    after=("threads",),
    sentence=sentence,
    advice="nothing to mend: this part is the hardware",
    label="the hardware",
)
