"""Memory that the operating system gives to the process anew, page by page."""

from __future__ import annotations

from roofline.analysis.gap_parts import PAGE_FAULTS
from roofline.comparison.account.annotation import Annotation, Pattern
from roofline.core.switch import MEMORY

ANNOTATION = Annotation(
    rule="allocation",
    says="{more} has more page faults than {less}, and its process spends more time in the operating system.",
    patterns=(Pattern(kind="gap", place=PAGE_FAULTS), Pattern(kind="setting", setting="environment MALLOC_.*")),
    pairs={"torch": "first/returned-memory"},
    advice={"torch": "keep freed memory in the process (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_)"},
    switch=MEMORY,
)
