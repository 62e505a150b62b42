"""Products that are larger than what was asked for, as a compiler or a layout padded them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import flop, opening
from roofline.comparison.causes.select import MORE, are, both


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Matched products of which one run executes more than was asked for; for attention, where kernels do."""
    pairs = attribution.matching
    ratios = [some.flops / np.where(some.model_flops > 0, some.model_flops, np.nan) for some in both(attribution)]
    one, other = ratios[0][pairs.pairs_a], ratios[1][pairs.pairs_b]
    padded = np.maximum(one, other) > MORE * np.minimum(one, other)
    # Backward kernels of attention multiply 5 or 7 times for the 4 products that are asked for, and pad nothing.
    kernels = are(attribution.a.segments, pairs.pairs_a, {"attention"})
    for name, chosen in (("padding", padded & ~kernels), ("attention", padded & kernels)):
        if chosen.any():
            yield Claim(name, pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def sentence(facts: Facts) -> str:
    """FLOPs of both runs."""
    text = (
        f"{opening(facts, 'padded products')}: {flop(facts.does_more)} ran where {facts.less} runs "
        f"{flop(facts.does_less)}"
    )
    return f"{text}."


CAUSE = Cause(
    name="padding",
    claim=claim,
    after=("unknown-work",),
    sentence=sentence,
    advice="choose sizes that need no padding (multiples of 8 or 64), or pack sequences",
    label="padded products",
    two_signs=True,
)
