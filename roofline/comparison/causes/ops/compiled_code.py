"""Code that one step has compiled and its backend does not see: the other run's ops in its place have no partner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import COMPILED
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim, Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, listed, opening, ops
from roofline.core.executor import COMPILED_CODE
from roofline.core.framework import framework
from roofline.core.schema import Profile
from roofline.core.switch import COMPILED_AWAY


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All that the other run does and this one is not seen to do, against the time inside of the compiled code."""
    runs = attribution.comparison.a.profile, attribution.comparison.b.profile
    hidden = [_compiled(run) for run in runs]
    if hidden[0] == hidden[1] or framework(runs[0]) != framework(runs[1]):
        return
    unmatched = attribution.matching.unmatched
    rows = [
        NONE if unseen else np.concatenate([NONE, *((stretch.a, stretch.b)[side] for stretch in unmatched)])
        for side, unseen in enumerate(hidden)
    ]
    inside = [share if unseen else 0.0 for share, unseen in zip(attribution.waited(COMPILED), hidden, strict=True)]
    if any(map(len, rows)):
        yield Claim("compiled-code", rows[0], rows[1], inside[0], inside[1], host=True)


def _compiled(run: Profile) -> bool:
    return COMPILED_CODE in run.flags


def _sees(run: Analysis) -> bool:
    """Whether it is compiled, too, and its backend sees what the compiler made."""
    return run.profile.compilation is not None


def _ops(work: Work) -> float:
    return work.ops


def sentence(facts: Facts) -> str:
    """What the one run runs op by op, and that nobody saw what the other one does in its place."""
    unseen = "compiled code, whose kernels this backend does not see"
    if _compiled(facts.run_more.profile):
        text = f"{opening(facts, unseen)}, in whose place {facts.less} runs {ops(facts.does_less)}"
        return f"{text} ({listed(facts.does_less.names)})."
    what = "kernels that are seen" if _sees(facts.run_more) else "what it runs op by op"
    text = f"{opening(facts, what)}: {ops(facts.does_more)} ({listed(facts.does_more.names)})"
    return f"{text}, where {facts.less} has {unseen}{host_and_after(facts)}."


def advice(facts: Facts) -> str:
    """To compile it, where that is faster; else how to see what is in it."""
    if _compiled(facts.run_more.profile) or _sees(facts.run_more):
        which = "it" if _compiled(facts.run_more.profile) else facts.less
        return f"profile {which} with --backend torch-compile, which sees the kernels of compiled code"
    return "compile it here, too (torch.compile); --backend torch-compile sees the kernels of compiled code"


CAUSE = Cause(
    name="compiled-code",
    claim=claim,
    before=("communication",),
    sentence=sentence,
    advice=advice,
    label=lambda facts: (
        f"compiled code in one run, {ops(max(facts.does_more, facts.does_less, key=_ops))} one by one in the other"
    ),
    proved_by=(COMPILED_AWAY,),
)
