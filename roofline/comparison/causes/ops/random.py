"""Random numbers, drawn by another generator in each framework, or in one run only."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, listed, opening, ops
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import are, only_one_does, together
from roofline.comparison.parity.random import draws


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


#: What draws the same numbers with less work, by what the program is written with.
_CHEAPER = {"jax": "take a cheaper generator (jax.config.update('jax_default_prng_impl', 'rbg'))"}


def advice(facts: Facts) -> str:
    """No dropout where it is not wanted; of numbers that drop nothing to draw fewer; another generator."""
    cheaper = in_words_of(facts.run_more.profile, _CHEAPER, "take a cheaper generator")
    if draws(facts.run_more):
        return f"turn dropout off where it is not wanted, or {cheaper}"
    return f"draw fewer numbers, or in a smaller type; or {cheaper}"


CAUSE = Cause(
    name="random",
    claim=claim,
    after=("attention",),  # masks and dropout inside of attention belong to its form
    sentence=sentence,
    advice=advice,
    label="random numbers",
    two_signs=True,
    proved_by=("dropout",),
)
