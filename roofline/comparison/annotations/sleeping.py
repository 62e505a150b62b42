"""Time in which the host slept."""

from __future__ import annotations

from roofline.analysis.gap_parts import SLEEPING
from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="host-idle",
    says="The thread that runs the step of {more} sleeps or waits off its core for longer than that of {less}.",
    patterns=(Pattern(kind="gap", place=SLEEPING),),
    pairs={"torch": "first/sleep"},
    advice={"torch": "look for what the step waits for: time.sleep, files, locks, other processes"},
)
