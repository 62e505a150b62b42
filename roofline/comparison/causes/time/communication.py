"""Collectives between devices, and waiting for them."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim, Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import SOME, host_part, moved, opening
from roofline.comparison.causes.select import of_classes


def claim(attribution: Attribution) -> Iterator[Claim]:
    """The collectives, as far as no computation hides them; gap that waits for them is claimed in waiting.py."""
    yield Claim("communication", *attribution.rows(lambda some: of_classes(some, {"communication"})))


def sentence(facts: Facts) -> str:
    """Launches and bytes of both runs, how much of them no computation hides, and what is waiting."""
    text = f"{opening(facts, 'communication')}: {moved(facts.does_more)} against {moved(facts.does_less)}"
    if _hidden(facts.does_more) or _hidden(facts.does_less):
        here, there = _exposed(facts.does_more), _exposed(facts.does_less)
        text += f"; {here} runs beside no computation, in {facts.less} {there}"
    if facts.dispatch > 0:
        text += host_part(facts, "waiting for collectives")
    return f"{text}."


def _hidden(work: Work) -> bool:
    """Whether some of it runs beside computation."""
    return work.own - work.seconds > SOME * work.own


def _exposed(work: Work) -> str:
    return f"{units.seconds(max(0.0, work.seconds))} of {units.seconds(work.own)}"


CAUSE = Cause(
    name="communication",
    claim=claim,
    sentence=sentence,
    advice="overlap collectives with the backward pass, or send fewer bytes",
    label="communication",
    same_work="of as many ops",
)
