"""The optimizer's update: one fused kernel, or many ops."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, moved, opening
from roofline.comparison.causes.select import of_phase


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All of the phase. The same ops in both runs are no other update."""
    if any(stretch.phase == "optimizer" for stretch in attribution.matching.unmatched):
        yield Claim("optimizer", *attribution.rows(lambda some: of_phase(some, "optimizer")), host=True)


def sentence(facts: Facts) -> str:
    """Launches and bytes of both updates."""
    text = f"{opening(facts, 'the optimizer')}: {moved(facts.does_more)} against {moved(facts.does_less)}"
    return f"{text}{host_and_after(facts)}."


CAUSE = Cause(
    name="optimizer",
    claim=claim,
    after=("data-input",),
    sentence=sentence,
    advice="use the fused optimizer (AdamW(fused=True)), or compile the update",
    label="the optimizer",
    proved_by=("optimizer",),
)
