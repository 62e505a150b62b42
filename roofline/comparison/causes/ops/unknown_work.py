"""Ops of unknown work that have no partner: they take their time, and nothing says what for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.analysis.callbacks import python_ops
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import following, listed, opening, ops
from roofline.comparison.causes.select import alone_or_in_place


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those ops. Where such an op stands in the place of ops of the other run, these go with it."""
    for a, b in alone_or_in_place(attribution, lambda some: np.isnan(some.flops) | np.isnan(some.bytes)):
        yield Claim("unknown-work", a, b, host=True)


def advice(facts: Facts) -> str:
    """How to make the work known, or what the other run calls in its place."""
    unknown = facts.does_more.unknown or facts.does_less.unknown
    if not unknown:  # none of it here: it stands elsewhere in the step
        return "register a formula for the ops of unknown work (roofline show names them; docs/counting.md)"
    told = f"register a formula for {listed(unknown)} (docs/counting.md)"
    if facts.does_more.unknown:
        return told
    if not python_ops(facts.run_less.profile).isdisjoint(unknown):
        return "do here what that function does, if it does the same: a cheaper algorithm, or a library's kernel"
    return f"use {listed(unknown)} here too, if it does the same; {told}, and the two can be compared"


def sentence(facts: Facts) -> str:
    """Launches of both runs, and what they are called in the one."""
    if not facts.does_more.unknown and facts.does_more.names:
        text = f"{opening(facts, listed(facts.does_more.names))}: {ops(facts.does_more)}"
        if not python_ops(facts.run_less.profile).isdisjoint(facts.does_less.unknown):
            other = f"in whose place {facts.less} calls Python back ({listed(facts.does_less.unknown)})"
        elif facts.does_less.unknown:
            other = f"in whose place {facts.less} has ops of unknown work ({listed(facts.does_less.unknown)})"
        else:
            other = f"where what {facts.less} does instead is among its ops of unknown work"
        return f"{text}, {other}{following(facts)}."
    told = facts.does_more.unknown or facts.does_more.names
    text = f"{opening(facts, 'ops of unknown work')}: {ops(facts.does_more)} ({listed(told)})"
    other = f" ({listed(facts.does_less.names)})" if facts.does_less.names else ""
    return f"{text}, where {facts.less} has {ops(facts.does_less)}{other}{following(facts)}."


def label(facts: Facts) -> str:
    """Which run has the ops of unknown work."""
    if facts.does_more.names and not facts.does_more.unknown:
        return f"{listed(facts.does_more.names[:1])} against ops of unknown work"
    return "ops of unknown work"


CAUSE = Cause(
    name="unknown-work",
    claim=claim,
    after=("random",),
    sentence=sentence,
    advice=advice,
    label=label,
)
