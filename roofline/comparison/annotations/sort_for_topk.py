"""A sort in the place of topk."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="more-work",
    says="{more} sorts where {less} takes the largest or smallest values.",
    patterns=(Pattern(more=("sort|argsort|msort",), less=("topk\\w*|kthvalue|min|max|amin|amax|arg(min|max)",)),),
    pairs={"torch": "fifth/points-sorted"},
    advice={"torch": "use torch.topk, which sorts no more than it returns"},
)
