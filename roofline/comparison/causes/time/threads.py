"""The same ops on another number of threads."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.conditions import threads
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import opening
from roofline.comparison.parity.difference import plain
from roofline.core.schema import Profile
from roofline.core.switch import Setting

#: Where a profile may record how many threads there were.
_RECORDED = ("threads", "NPROC", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "intra-op threads")


def claim(attribution: Attribution) -> Iterator[Claim]:
    """The time of the ops that both runs have, on CPUs."""
    runs = attribution.comparison.a, attribution.comparison.b
    counts = [threads(run.profile) for run in runs]
    if all(run.device.kind == "cpu" for run in runs) and None not in counts and counts[0] != counts[1]:
        about = {"a": str(counts[0]), "b": str(counts[1])}
        yield Claim("threads", attribution.matching.pairs_a, attribution.matching.pairs_b, about=about)


def sentence(facts: Facts) -> str:
    """How many threads either run has."""
    return (
        f"{opening(facts, 'the same ops')}: it runs {facts.about_more} "
        f"{'thread' if facts.about_more == '1' else 'threads'}, {facts.less} {facts.about_less}."
    )


def setting(mine: Profile, other: Profile) -> Setting | None:
    """As many threads as the other run had."""
    now, target = threads(mine) or "", threads(other) or ""
    if not (target.isascii() and target.isdecimal()) or int(target) < 1 or now == target:
        return None
    return Setting(
        text=f"threads {plain(now) or 'not recorded'} -> {int(target)}",
        moves=tuple(f"environment {name}" for name in _RECORDED),
        threads=int(target),
    )


CAUSE = Cause(
    name="threads",
    claim=claim,
    after=("fusion",),
    sentence=sentence,
    advice="give both the same number of threads (--threads)",
    label=lambda facts: f"threads ({facts.about_more} against {facts.about_less})",
    setting=setting,
)
