"""A step in more compiled programs, or calls of graphs, than the other run has."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="jit-not-in-effect",
    says="Python calls more compiled programs or graphs per step in one run than in the other.",
    patterns=(Pattern(kind="setting", setting="compiled programs|calls of graphs"),),
)
