"""Dropout in one run."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="random",
    says="{more} drops values at random, {less} does so less often or not at all.",
    patterns=(
        Pattern(more=("(native_|fused_|feature_)?dropout\\w*|bernoulli",)),
        Pattern(kind="setting", setting="dropout"),
    ),
    switch="dropout",
)
