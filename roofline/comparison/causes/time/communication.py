"""Collectives between devices, and waiting for them."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_part, moved, opening
from roofline.comparison.causes.select import of_classes


def claim(attribution: Attribution) -> Iterator[Claim]:
    """The collectives; gap that waits for them is claimed in waiting.py."""
    yield Claim("communication", *attribution.rows(lambda some: of_classes(some, {"communication"})))


def sentence(facts: Facts) -> str:
    """Launches and bytes of both runs, and what of it is waiting."""
    text = f"{opening(facts, 'communication')}: {moved(facts.does_more)} against {moved(facts.does_less)}"
    if facts.dispatch > 0:
        text += host_part(facts, "waiting for collectives")
    return f"{text}."


CAUSE = Cause(
    name="communication",
    claim=claim,
    sentence=sentence,
    advice="overlap collectives with the backward pass, or send fewer bytes",
    label="communication",
    same_work="of as many ops",
)
