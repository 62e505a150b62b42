"""Checks for numbers that are not finite."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="more-work",
    says="{more} checks for numbers that are not finite, {less} does so less often or not at all.",
    patterns=(
        Pattern(phase="forward", more=("isnan|isinf|isfinite",)),
        Pattern(more=("abs", "eq", "ne", "all")),  # of which PyTorch's isfinite consists
    ),
    pairs={"torch": "second/unet-nan-checks"},
    advice={"torch": "check once in a while, or only the loss"},
)
