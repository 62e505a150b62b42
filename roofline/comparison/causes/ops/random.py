"""Random numbers, drawn by another generator in each framework, or in one run only."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, listed, opening, ops
from roofline.comparison.causes.select import are, only_one_does, together


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those without a partner, with what is made of them."""
    for a, b in only_one_does(attribution, "random"):
        yield Claim("random", a, b, host=True)
    a, b = attribution.free(*together([(stretch.a, stretch.b) for stretch in attribution.matching.unmatched]))
    a, b = a[are(attribution.a.segments, a, {"random"})], b[are(attribution.b.segments, b, {"random"})]
    if len(a) or len(b):
        yield Claim("random", a, b, host=True)


def sentence(facts: Facts) -> str:
    """Launches of both runs, and what they are called in the one."""
    other = ops(facts.does_less) if facts.does_less.ops else "none"
    text = f"{opening(facts, 'random numbers')}: {ops(facts.does_more)} ({listed(facts.does_more.names)}), where "
    return f"{text}{facts.less} has {other}{host_and_after(facts)}."


CAUSE = Cause(
    name="random",
    claim=claim,
    after=("attention",),  # masks and dropout inside of attention belong to its form
    sentence=sentence,
    advice="turn dropout off where it is not wanted, or take a cheaper generator",
    label="random numbers",
    two_signs=True,
    proved_by=("dropout",),
)
