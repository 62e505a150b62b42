"""Ops of unknown work that have no partner: they take their time, and nothing says what for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts, printable
from roofline.comparison.causes.phrases import following, listed, opening, ops


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those ops. Where such an op stands in the place of ops of the other run, these go with it."""
    free_a, free_b = attribution.rows(lambda some: np.isnan(some.flops) | np.isnan(some.bytes))
    pairs = attribution.matching
    alone = np.setdiff1d(free_a, pairs.pairs_a), np.setdiff1d(free_b, pairs.pairs_b)
    unknown = np.zeros(len(attribution.a.segments), bool), np.zeros(len(attribution.b.segments), bool)
    for marks, rows in zip(unknown, alone, strict=True):
        marks[rows] = True
    for stretch in pairs.unmatched if pairs.alike else ():
        a, b = attribution.free(stretch.a, stretch.b)
        if any(len(rows) and marks[rows].all() for marks, rows in zip(unknown, (a, b), strict=True)):
            yield Claim("unknown-work", a, b, host=True)
    yield Claim("unknown-work", *alone, host=True)


#: What frameworks call a Python function that a compiled step calls back.
_CALLS_BACK = re.compile(r"callback|py_?func|python", re.IGNORECASE)


def advice(facts: Facts) -> str:
    """To take Python out of the step where that is what is unknown; else how to make the work known."""
    unknown = facts.does_more.unknown or facts.does_less.unknown
    called = next((name for name in facts.does_more.unknown if _CALLS_BACK.search(name)), None)
    if called is not None:
        return f"take the Python function out of the compiled step ({printable(called)}): the step waits for it"
    if not unknown:  # none of it here: it stands elsewhere in the step
        return "register a formula for the ops of unknown work (roofline show names them; docs/counting.md)"
    told = f"register a formula for {listed(unknown)} (docs/counting.md)"
    if facts.does_more.unknown:
        return told
    return f"use {listed(unknown)} here too, if it does the same; {told}, and the two can be compared"


def sentence(facts: Facts) -> str:
    """Launches of both runs, and what they are called in the one."""
    if not facts.does_more.unknown and facts.does_more.names:
        text = f"{opening(facts, listed(facts.does_more.names))}: {ops(facts.does_more)}"
        if facts.does_less.unknown:
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
