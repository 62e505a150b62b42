"""A softmax from its formula, where the other run has one op for it."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="fusion",
    says="{more} computes a softmax from exponentials and sums, {less} with one op.",
    patterns=(Pattern(more=("exp", "sum", "div"), less=("softmax",), share="any"),),
    pairs={"torch": "second/decoder-softmax-written-out"},
    advice={"torch": "use torch.softmax"},
)
