"""A compiled step in more graphs than the other run has."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="graph-breaks",
    says="The step is compiled in more graphs in one run than in the other.",
    patterns=(Pattern(kind="setting", setting="compiled graphs", values=(".*graph breaks?", ".*")),),
)
