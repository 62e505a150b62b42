"""What a host does besides dispatching, while no op runs: Python, sleeping, input between ops."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import SOME
from roofline.comparison.causes.select import MORE


def claim(attribution: Attribution) -> Iterator[Claim]:
    """What an op takes longer right after it: its caches are cold, and a core that slept is slow.

    Of ops that both runs have, and that only one of them is late for, beyond what is usual before an op in either. The
    gap itself is claimed in host_bound.py, where nothing else explains it.
    """
    if not attribution.one_executor:
        return
    (a, b), pairs = attribution.host, attribution.matching
    usual = max(a.usual, b.usual)
    late_a = (a.all > usual * a.times)[attribution.a.segments.op[pairs.pairs_a]]
    late_b = (b.all > usual * b.times)[attribution.b.segments.op[pairs.pairs_b]]
    chosen = (late_a != late_b) & (attribution.left_a[pairs.pairs_a] == 1) & (attribution.left_b[pairs.pairs_b] == 1)
    if chosen.any():
        yield Claim("host-idle", pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def sentence(facts: Facts) -> str:
    """What of it the op after takes longer, and whether the thread was on a core."""
    text = f"{facts.more} spends {units.seconds(facts.seconds)} more on its host while no op runs, "
    dispatches_more = facts.launches_more > MORE * facts.launches_less
    text += "beyond what dispatching an op takes" if dispatches_more else "which is not dispatching more ops"
    late = facts.seconds - facts.dispatch
    if SOME * facts.seconds < late <= facts.seconds:
        text += f"; {units.seconds(late)} of it is what the ops right after it take longer"
    match facts.about.get("host"):
        case "ops":
            return f"{text}: {facts.about_more}, {facts.less} {facts.about_less}: Python around each of them."
        case "asleep":
            text += f"; its thread was on no core for {facts.about_more} of a step, "
            return f"{text}against {facts.about_less}: it slept or waited."
        case "awake":
            return f"{text}; its thread was on a core all the while: Python between them."
    return f"{text}: Python, sleeping or input between them."


def advice(facts: Facts) -> str:
    """What to look for."""
    match facts.about.get("host"):
        case "ops":
            return (
                "let less Python stand around each op (modules, hooks, wrappers), fewer and larger ops, or compile it"
            )
        case "asleep":
            return "look for sleeps, locks, I/O and input between the ops (py-spy dump)"
        case "awake":
            return "look for what the step does besides its ops: Python loops, logging, checks (py-spy, cProfile)"
    return "look for what the step does besides its ops (py-spy, cProfile): I/O, sleeps, Python loops"


CAUSE = Cause(
    name="host-idle",
    claim=claim,
    after=("allocation",),
    sentence=sentence,
    advice=advice,
    label="host time between ops",
    same_work="always",
    in_gap=True,
    compilable=True,
)
