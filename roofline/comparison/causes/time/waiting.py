"""What is known of a gap besides dispatch: input and compilation, and waiting for collectives."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim
from roofline.comparison.causes.conditions import of_both
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_part, listed, opening, ops

#: What a step spends on compiling programs anew [s], where that was recorded.
_COMPILING = "compiling_seconds_per_step"


def claim(attribution: Attribution) -> Iterator[Claim]:
    """The shares of the gaps that are known, by the cause that the profiled steps have for them."""
    for idle, name in (
        ("communication wait", "communication"),
        ("data input", "data-input"),
        ("graph break/compilation", "compilation"),
    ):
        a, b = attribution.waited(idle)
        if a or b:
            yield Claim(name, NONE, NONE, a, b)
    compiling = of_both(attribution, _COMPILING)
    if compiling is not None and compiling[0] != compiling[1]:
        runs = attribution.comparison.a, attribution.comparison.b
        a, b = (seconds / run.gap if run.gap > 0 else 0.0 for seconds, run in zip(compiling, runs, strict=True))
        yield Claim("compilation", NONE, NONE, a, b)


def sentence_of_input(facts: Facts) -> str:
    """How much longer it waits, and what runs meanwhile."""
    if not facts.does_more.ops:
        return f"{facts.more} waits {units.seconds(facts.seconds)} longer for its input while no op runs."
    told = f"{ops(facts.does_more)} ({listed(facts.does_more.names)}) that its loader runs in the step"
    between = host_part(facts, "while none of them runs") if facts.dispatch > 0 else ""
    return f"{opening(facts, 'reading its input')}: {told}{between}."


def sentence_of_compilation(facts: Facts) -> str:
    """How much longer it compiles."""
    return f"{facts.more} spends {units.seconds(facts.seconds)} more on guards and compiling inside the step."


CAUSES = (
    Cause(
        name="data-input",
        claim=claim,
        after=("synchronisation",),
        sentence=sentence_of_input,
        advice="load and copy the next batch while this one is computed (workers, pinned memory, prefetching)",
        label="waiting for input",
        same_work="of as many ops",
    ),
    Cause(
        name="compilation",
        sentence=sentence_of_compilation,
        advice="look for graph breaks (roofline show), shapes that change, and functions that each step jits anew",
        label="compiling inside the step",
        same_work="of as many ops",
    ),
)
