"""Random numbers that one run draws."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

_DRAWS = "rand\\w*|normal|uniform|exponential|multinomial|(stateless)?(truncated)?(random|normal|uniform)\\w*|rng\\w*"

ANNOTATION = Annotation(
    rule="random",
    says="{more} draws random numbers with ops that {less} executes less often or not at all.",
    patterns=(Pattern(more=(_DRAWS,)), Pattern(kind="setting", setting="random numbers")),
    pairs={"torch": "first/random-numbers"},
    advice={"torch": "draw fewer numbers, or once outside of the step"},
)
