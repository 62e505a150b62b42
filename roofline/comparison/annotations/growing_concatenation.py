"""Concatenation again and again, where the other run stacks once."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="more-work",
    says="{more} concatenates again and again where {less} stacks.",
    patterns=(Pattern(more=("cat|concat\\w*",), less=("stack|pack|tensorliststack",), share="most"),),
    pairs={"torch": "fifth/orbit-grown"},
    advice={"torch": "collect the tensors in a list and call torch.stack once, after the loop"},
)
