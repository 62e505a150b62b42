"""Products that ran again without being asked for: checkpointed activations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.arrays import Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import flop, host_and_after, opening, ops
from roofline.comparison.causes.select import first_times, more_flops, together
from roofline.comparison.conservation import again


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those products, and between the same neighbours the vector work around them, which was computed again too.

    What is to be computed again is set up before it is computed first: what the host takes longer there belongs to it.
    """
    found = []
    phases: dict[str, list[tuple[Rows, Rows]]] = {}
    for stretch in attribution.matching.unmatched:
        phases.setdefault(stretch.phase, []).append(attribution.free(stretch.a, stretch.b))
    for stretches in phases.values():
        products = [(a[again(attribution.a.segments, a)], b[again(attribution.b.segments, b)]) for a, b in stretches]
        # Both may compute the same again in other blocks, or in one product where the other run has several.
        if not more_flops(attribution, *together(products)):
            continue
        for whole, part in zip(stretches, products, strict=True):
            if more_flops(attribution, *part):
                found.append(whole if attribution.matching.alike else part)
                yield Claim("recomputation", *found[-1], host=True)
    if found:
        for pairs in first_times(attribution, [np.concatenate(rows) for rows in zip(*found, strict=True)]):
            yield Claim("recomputation", before=pairs)


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
