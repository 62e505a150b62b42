"""Programs that are traced or compiled in the step."""

from __future__ import annotations

from roofline.analysis.gap_parts import COMPILING
from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="compilation",
    says="{more} traces or compiles in its steps, for longer than {less}.",
    patterns=(Pattern(kind="gap", place=COMPILING),),
    pairs={"jax": "third/jax-mixer-jitted-anew"},
    advice={"jax": "define jitted functions once, outside of the step, and pass numbers as arrays"},
)
