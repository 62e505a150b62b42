"""Results read by the host, copies to it, and time in which the host waited for the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline import units
from roofline.analysis.gap_causes import SYNCHRONISATION
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim
from roofline.comparison.causes.conditions import of_both
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.longer_waits import longer_waits
from roofline.comparison.causes.phrases import MOST, following, listed, opening, ops
from roofline.comparison.causes.select import of_classes, only_one_does
from roofline.comparison.host_reads import for_the_host
from roofline.core.executor import READS


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All of that, and what is computed only to be read. What is left of a gap may be reading too: host_bound.py."""
    for a, b in only_one_does(attribution, "transfer"):
        yield Claim("synchronisation", a, b, host=True)
    yield from _computed_to_be_read(attribution)
    reads, shares = [host.reads for host in attribution.host], attribution.reading
    more = shares[0] * attribution.comparison.a.gap - shares[1] * attribution.comparison.b.gap
    if attribution.one_executor and (reads[0] - reads[1]) * more > 0:
        about = {"a": f"{reads[0]:.0f}", "b": f"{reads[1]:.0f}"}
        yield Claim("synchronisation", NONE, NONE, *shares, about=about)
    read = attribution.rows(lambda some: of_classes(some, {"transfer"}))
    waited = attribution.waited(SYNCHRONISATION)
    gaps, longer = (attribution.comparison.a.gap, attribution.comparison.b.gap), longer_waits(attribution)
    more = waited[0] * gaps[0] - waited[1] * gaps[1]
    # After a wait of both runs the pause before the next op is the same: what it is called is no difference.
    if longer is not None and longer[more < 0] < MOST * abs(more):
        waited = 0.0, 0.0
    yield Claim("synchronisation", read[0], read[1], waited[0], waited[1], host=True)


def _computed_to_be_read(attribution: Attribution) -> Iterator[Claim]:
    """On a CPU a read is no op. Where one run reads more, ops that only it has and of which only numbers are made."""
    reads = of_both(attribution, READS)
    if reads is None or reads[0] == reads[1] or not attribution.matching.alike:
        return
    reader = int(reads[1] > reads[0])
    side = (attribution.a, attribution.b)[reader]
    alone = np.concatenate([NONE, *((stretch.a, stretch.b)[reader] for stretch in attribution.matching.unmatched)])
    rows = alone[np.asarray(for_the_host(side.analysis.profile), bool)[side.segments.op[alone]]]
    if len(rows):
        a, b = (NONE, rows) if reader else (rows, NONE)
        yield Claim("synchronisation", a, b, host=True)


def sentence(facts: Facts) -> str:
    """How many results are read, or which ops read them, or how long the host waits."""
    head = opening(facts, "reading results on the host")
    if facts.about_more:
        return f"{head}: {facts.about_more} per step, {facts.less} {facts.about_less}."
    if not facts.does_more.ops:
        return f"{facts.more} waits {units.seconds(facts.seconds)} more for what it runs, before it goes on."
    return (
        f"{head}: {ops(facts.does_more)} ({listed(facts.does_more.names)}), {facts.less} has "
        f"{ops(facts.does_less)}{following(facts)}."
    )


CAUSE = Cause(
    name="synchronisation",
    claim=claim,
    after=("communication",),
    sentence=sentence,
    advice="keep values on the device (no .item(), print or Python branch on a tensor inside the step)",
    label="results read on the host",
    same_work="of as many ops",
)
