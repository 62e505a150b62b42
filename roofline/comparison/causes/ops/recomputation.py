"""Products that ran again without being asked for: checkpointed activations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import flop, host_and_after, opening, ops
from roofline.comparison.causes.select import again, first_time


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those products, and between the same neighbours the vector work around them, which was computed again too.

    What is to be computed again is set up before it is computed first: what the host takes longer there belongs to it.
    Where both runs compute the same again, it belongs to neither of them more than to the other.
    """
    found = []
    for stretch in attribution.matching.unmatched:
        a, b = attribution.free(stretch.a, stretch.b)
        again_a, again_b = a[again(attribution.a.segments, a)], b[again(attribution.b.segments, b)]
        if len(again_a) != len(again_b):
            rows = (a, b) if attribution.matching.alike else (again_a, again_b)
            found.append(rows)
            yield Claim("recomputation", *rows, host=True)
    if found:
        repeated = [np.concatenate(rows) for rows in zip(*found, strict=True)]
        (a, with_a), (b, with_b) = (first_time(attribution, side, rows) for side, rows in enumerate(repeated))
        of_both = np.isin(a, b)
        yield Claim("recomputation", before=(a[of_both], with_a[of_both]))
        yield Claim("recomputation", before=(a[~of_both], with_a[~of_both]))
        yield Claim("recomputation", before=(b[~np.isin(b, a)], with_b[~np.isin(b, a)]))


def sentence(facts: Facts) -> str:
    """How many products, and their FLOPs."""
    text = (
        f"{opening(facts, 'products that it computes again')}: {ops(facts.does_more)}, {flop(facts.does_more)} more "
        f"than was asked for{host_and_after(facts, 'the ops that do them first or follow them')}"
    )
    return f"{text}."


CAUSE = Cause(
    name="recomputation",
    claim=claim,
    after=("optimizer",),
    sentence=sentence,
    advice="turn checkpointing off where the memory suffices",
    label="recomputation",
    two_signs=True,
)
