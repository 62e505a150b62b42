"""A copy that repeats values, as a broadcast would not."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="more-work",
    says="{more} copies values to repeat them.",
    patterns=(Pattern(unlike=True, more=("repeat|repeat_interleave\\w*|tile|broadcastto|expand_copy",)),),
    pairs={"torch": "fifth/points-copied"},
    advice={"torch": "use expand, or indices that broadcast, in the place of repeat"},
)
