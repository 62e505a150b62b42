"""What is known of a gap besides dispatch: input and compilation, and waiting for collectives."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim
from roofline.comparison.causes.conditions import of_both
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.longer_waits import longer_waits
from roofline.comparison.causes.phrases import host_part, listed, opening, ops
from roofline.comparison.causes.program import in_words_of
from roofline.core.framework import written_in

#: What a step spends on compiling programs anew [s], where that was recorded.
_COMPILING = "compiling_seconds_per_step"
#: What makes a compiler compile in a step, by what the program is written with.
_ANEW = {
    "torch": "look for graph breaks (roofline show), and for shapes and Python values that change (mark them dynamic)",
    "jax": "jit the function once, outside of the step, and keep its shapes and static arguments: a new function is "
    "compiled anew (JAX_LOG_COMPILES=1 names them)",
    "tensorflow": "make the tf.function once, outside of the step, give it tensors and no Python numbers, and keep "
    "their shapes (or say input_signature)",
    "keras": "compile the model once, outside of the step, and keep the shapes of what it is given",
    "tf_keras": "compile the model once, outside of the step, and keep the shapes of what it is given",
}


def claim(attribution: Attribution) -> Iterator[Claim]:
    """The shares of the gaps that are known, by the cause that the profiled steps have for them."""
    for idle, name in (
        ("communication wait", "communication"),
        ("data input", "data-input"),
        ("graph break/compilation", "compilation"),
    ):
        a, b = attribution.waited(idle)
        if name == "data-input" and attribution.queued and attribution.one_executor:
            a, b = _longer(attribution, a, b)
        if a or b:
            yield Claim(name, NONE, NONE, a, b)
    compiling = of_both(attribution, _COMPILING)
    if compiling is not None and compiling[0] != compiling[1]:
        runs = attribution.comparison.a, attribution.comparison.b
        a, b = (seconds / run.gap if run.gap > 0 else 0.0 for seconds, run in zip(compiling, runs, strict=True))
        yield Claim("compilation", NONE, NONE, a, b)


def _longer(attribution: Attribution, a: float, b: float) -> tuple[float, float]:
    """The shares, of which the run that waits longer has no more than it waits longer before the same ops.

    An idle time has one cause, that of most of it: a pause that both runs have before an op is no input of one of them.
    """
    longer, gaps = longer_waits(attribution), (attribution.comparison.a.gap, attribution.comparison.b.gap)
    seconds = [share * gap for share, gap in zip((a, b), gaps, strict=True)]
    side = int(seconds[1] > seconds[0])
    if longer is not None and gaps[side] > 0:
        seconds[side] = min(seconds[side], seconds[1 - side] + longer[side])
    one, other = (each / gap if gap > 0 else 0.0 for each, gap in zip(seconds, gaps, strict=True))
    return one, other


def sentence_of_input(facts: Facts) -> str:
    """How much longer it waits, and what runs meanwhile."""
    if not facts.does_more.ops:
        return f"{facts.more} waits {units.seconds(facts.seconds)} longer for its input while no op runs."
    told = f"{ops(facts.does_more)} ({listed(facts.does_more.names)}) that its loader runs in the step"
    between = host_part(facts, "while none of them runs") if facts.dispatch > 0 else ""
    return f"{opening(facts, 'reading its input')}: {told}{between}."


def sentence_of_compilation(facts: Facts) -> str:
    """How much longer it compiles."""
    what = "guards and compiling" if written_in(facts.run_more.profile) == "torch" else "compiling"
    return f"{facts.more} spends {units.seconds(facts.seconds)} more on {what} inside the step."


def advice_on_compilation(facts: Facts) -> str:
    """Where each compiler compiles anew."""
    return in_words_of(
        facts.run_more.profile, _ANEW, "compile once, before the step, and keep the shapes of what it is given"
    )


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
        advice=advice_on_compilation,
        label="compiling inside the step",
        same_work="of as many ops",
    ),
)
