"""Another number of threads."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern
from roofline.core.switch import THREADS

ANNOTATION = Annotation(
    rule="threads",
    says="The runs have different numbers of threads.",
    patterns=(Pattern(kind="setting", setting="threads"),),
    pairs={"torch": "first/single-thread"},
    advice={"torch": "give both the same number of threads (--threads)"},
    switch=THREADS,
)
