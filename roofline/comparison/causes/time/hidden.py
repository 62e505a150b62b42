"""What more work hides of a host that runs ahead: taken off what took that work. No cause of its own.

Where ops run on other threads than the one that dispatches them, the gap of a step is what of the host's time no op
hides. Of two hosts that do the same, the one beside less work shows more of it. That is no time that it spends more:
the work is longer by so much less than its ops take.
"""

from __future__ import annotations

from collections.abc import Iterator

from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Rule
from roofline.comparison.causes.claim import Claim
from roofline.core.executor import ON_CORE, WAITED

#: Up to this part of what a gap is longer by, a host may be off its core before it waits for results: there it sleeps,
#: or waits within its step, and how long it would take beside other work is not known. By choice.
_AWAY = 0.25


def claim(attribution: Attribution) -> Iterator[Claim]:
    """What is hidden in the run with less of a gap, taken off the causes for which its ops take longer."""
    a, b = attribution.comparison.a, attribution.comparison.b
    more = attribution.gap_a * a.gap - attribution.gap_b * b.gap
    sign = 1 if more < 0 else -1  # +1: A hides more
    hides, shows = (a, b)[::sign]
    taking = [(number, sign * attribution.seconds(entry)) for number, entry in enumerate(attribution.entries)]
    taking = [(number, seconds) for number, seconds in taking if seconds > 0]
    whole = sum(seconds for _, seconds in taking)
    hidden = min(_hidden(hides, shows, abs(more)), hides.busy - shows.busy, whole)
    if hidden <= 0:
        return
    for number, seconds in taking:
        share = hidden * seconds / whole / shows.gap
        rule = attribution.entries[number].claim.rule
        yield Claim(rule, gap_a=share if sign < 0 else 0.0, gap_b=share if sign > 0 else 0.0, after=number)


def _hidden(hides: Analysis, shows: Analysis, more: float) -> float:
    """What of a gap that is longer by so much [s] is no more of the host's time; 0 where that is not known."""
    known = []
    for run in (hides, shows):
        on_core, waited = (run.profile.conditions.get(name) for name in (ON_CORE, WAITED))
        if on_core is None or waited is None or run.wall - on_core - waited > _AWAY * more:
            return 0.0
        known.append(on_core)
    return more - max(0.0, known[1] - known[0])


RULE = Rule(name="hidden", claim=claim, after=("allocation",), before=("host-idle",))
