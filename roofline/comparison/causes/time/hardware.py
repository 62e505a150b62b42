"""The same ops under the ceilings of another device."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.analysis.floors import ATTAINED
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import opening
from roofline.comparison.causes.select import ALL, pairs_of
from roofline.core.vocabulary import PRODUCTS


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Of matched ops what the devices make of the difference.

    Where both runs attain half of their roofs, time is floor times what it misses the floor by, t = f x, and
    t_A - t_B splits symmetrically: (f_A - f_B) (x_A + x_B) / 2 is the devices', which is (f_A - f_B) / 2 f_A of the
    time of A less (f_B - f_A) / 2 f_B of that of B. Far below its roof a kernel does not wait for it, and the devices'
    part is what the floors differ by. The rest is left to whatever else explains it.
    """
    if not attribution.comparison.hardware_differs:
        return
    for classes in (PRODUCTS, ALL - PRODUCTS):
        a, b = pairs_of(attribution, classes)
        floors = float(attribution.a.segments.floor[a].sum()), float(attribution.b.segments.floor[b].sum())
        times = float(attribution.a.own[a].sum()), float(attribution.b.own[b].sum())
        if not all(floors) or not all(times):
            continue
        if all(floor >= ATTAINED * time for floor, time in zip(floors, times, strict=True)):
            apart = floors[0] - floors[1]
            yield Claim("hardware", a, b, part_a=apart / (2 * floors[0]), part_b=-apart / (2 * floors[1]))
        else:
            yield Claim("hardware", a, b, part_a=floors[0] / times[0], part_b=floors[1] / times[1])


def sentence(facts: Facts) -> str:
    """The floors on both devices."""
    text = f"{opening(facts, 'the same ops')} because of its device: their floors are "
    text += f"{units.seconds(facts.does_more.floor)} there and {units.seconds(facts.does_less.floor)} on the other"
    return f"{text}."


CAUSE = Cause(
    name="hardware",
    claim=claim,
    after=("threads",),
    sentence=sentence,
    advice="nothing to mend: this part is the hardware",
    label="the hardware",
)
