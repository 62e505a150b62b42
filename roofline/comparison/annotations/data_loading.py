"""Input that the step waits for, or prepares itself."""

from __future__ import annotations

from roofline.analysis.gap_parts import FOR_INPUT
from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="data-input",
    says="{more} loads input in its step, {less} does so for less time or not at all.",
    patterns=(Pattern(kind="gap", place=FOR_INPUT), Pattern(place="DataLoader")),
    pairs={"torch": "fourth/recommender-loaded"},
    advice={"torch": "load beside the step (DataLoader with num_workers), or once before it"},
)
