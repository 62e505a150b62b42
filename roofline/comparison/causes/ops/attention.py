"""One fused attention kernel against products and a softmax."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from roofline.comparison.arrays import Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, moved, opening
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import blocks_with, classes_of
from roofline.comparison.segments import Segments
from roofline.core.cost import NOT_FUSED
from roofline.core.vocabulary import PRODUCTS

#: What the fused kernel is called, by what the program is written with.
_FUSED = {
    "torch": "torch.nn.functional.scaled_dot_product_attention",
    "jax": "jax.nn.dot_product_attention",
    "keras": "keras.ops.dot_product_attention",
}

#: The note of an op in such a call, and what it says of the obstacle.
_NOTE = re.compile(rf"{NOT_FUSED}(?:: ([^;]*))?")
#: What stands in the place of an obstacle that is not known.
_ARGUMENTS = "something that was not recorded (its arguments, or kernels that the program switched off)"
#: What to do about an obstacle, by a word of what is said of it (roofline/pytorch/unfused_attention.py); the first.
_INSTEAD = (
    (
        "strided",
        "lay these tensors out with neighbours of the last dimension side by side: .contiguous() once, or no "
        "transpose that moves the last dimension",
    ),
    ("dropout", "leave it out where it is not needed (dropout_p=0.0); on a CPU no kernel drops out"),
    ("mask", "give the mask two or four dimensions (mask[:, None])"),
    ("dimensions", "give it tensors of four dimensions: batch, heads, length, width"),
    ("width", "make the heads of query, key and value equally wide, with zeros if need be"),
)
_ASK = (
    "look for sdpa_kernel, enable_flash_sdp and the like, which switch kernels off; else call it once under "
    "torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION), whose warnings say what no kernel takes (as a mask "
    "that requires a gradient)"
)


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
            told = [
                _obstacle(some, rows)
                for some, rows in ((attribution.a.segments, keep[0]), (attribution.b.segments, keep[1]))
            ]
            about = {"a": told[0], "b": told[1]} if any(told) else {}
            yield Claim("attention", keep[0], keep[1], host=True, about=about)


def _obstacle(some: Segments, rows: Rows) -> str:
    """What keeps fused kernels out where the program calls fused attention all the same; "" where it does not."""
    found = (_NOTE.search(some.whole[row].cost.note) for row in rows.tolist())
    return next((one[1] or _ARGUMENTS for one in found if one), "")


def sentence(facts: Facts) -> str:
    """Which form either run has, with its launches and bytes; of a call for a fused kernel, what keeps that out."""
    forms = ("written out", "in one fused kernel")
    how, other = forms if _fused(facts) else forms[::-1]
    what = f"attention {how}"
    if _called(facts):
        what = f"calls of fused attention that no fused kernel carries out, because of {facts.about_more}"
    text = (
        f"{opening(facts, what)}: {moved(facts.does_more)}; {facts.less} does it {other}, "
        f"{moved(facts.does_less)}{host_and_after(facts)}"
    )
    return f"{text}."


def advice(facts: Facts) -> str:
    """The other form, or what lets the fused kernel do it."""
    if _called(facts):
        return next((told for word, told in _INSTEAD if word in facts.about_more), _ASK)
    if _fused(facts):
        anywhere = "scaled_dot_product_attention, jax.nn.dot_product_attention"
        return f"use the fused kernel ({in_words_of(facts.run_more.profile, _FUSED, anywhere)})"
    return "try attention written out at this size, where the fused kernel loses"


def _called(facts: Facts) -> bool:
    """Whether the run that spends more asks for the fused kernel that the other one has."""
    return _fused(facts) and bool(facts.about_more)


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
