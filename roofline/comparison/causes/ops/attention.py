"""One fused attention kernel against products and a softmax."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, moved, opening
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import blocks_with, classes_of
from roofline.core.vocabulary import PRODUCTS

#: What the fused kernel is called, by what the program is written with.
_FUSED = {
    "torch": "torch.nn.functional.scaled_dot_product_attention",
    "jax": "jax.nn.dot_product_attention",
    "keras": "keras.ops.dot_product_attention",
}


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All that stands in the place of the fused kernel. Kernels that multiply more often are claimed in padding.py."""
    for stretch in attribution.matching.unmatched:
        a, b = attribution.free(stretch.a, stretch.b)
        sides = (classes_of(attribution.a.segments, a), classes_of(attribution.b.segments, b))
        fused = ["attention" in classes for classes in sides]
        written = ["contraction" in classes for classes in sides]
        if fused[0] != fused[1] and written[fused.index(False)]:
            blocks = blocks_with(attribution.a.segments, a, PRODUCTS) | blocks_with(attribution.b.segments, b, PRODUCTS)
            keep = [
                rows[np.asarray([some.places[row].block in blocks for row in rows], bool)]
                for some, rows in ((attribution.a.segments, a), (attribution.b.segments, b))
            ]
            yield Claim("attention", keep[0], keep[1], host=True)


def sentence(facts: Facts) -> str:
    """Which form either run has, with its launches and bytes."""
    forms = ("written out", "in one fused kernel")
    how, other = forms if _fused(facts) else forms[::-1]
    text = (
        f"{opening(facts, f'attention {how}')}: {moved(facts.does_more)}; {facts.less} does it {other}, "
        f"{moved(facts.does_less)}{host_and_after(facts)}"
    )
    return f"{text}."


def advice(facts: Facts) -> str:
    """The other form."""
    if _fused(facts):
        anywhere = "scaled_dot_product_attention, jax.nn.dot_product_attention"
        return f"use the fused kernel ({in_words_of(facts.run_more.profile, _FUSED, anywhere)})"
    return "try attention written out at this size, where the fused kernel loses"


def _fused(facts: Facts) -> bool:
    """Whether the run that spends less has the fused kernel."""
    return "attention" in facts.does_less.classes


CAUSE = Cause(
    name="attention",
    claim=claim,
    after=("recomputation",),
    sentence=sentence,
    advice=advice,
    label="another form of attention",
    two_signs=True,
    proved_by=("attention",),
)
