"""Results of the step read by the host."""

from __future__ import annotations

from roofline.analysis.gap_parts import READING
from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="synchronisation",
    says="The host of {more} reads results, which takes longer than in {less}.",
    patterns=(Pattern(kind="gap", place=READING),),
    pairs={"torch": "fourth/experts-by-token"},
    advice={"torch": "read fewer results in the step (.item(), float(x), if x > 0, print)"},
)
