"""Memory that is fetched from the system anew in each step: the first touch of a page is a fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.conditions import AWAY, of_both
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import counter, opening
from roofline.comparison.causes.select import ALL, left
from roofline.core.schema import Profile
from roofline.core.switch import MALLOC, Setting

#: Page faults per step that are worth a thought, by choice: 256 of them are 1 MiB of fresh pages of 4 KiB.
_MANY_FAULTS = 256.0
#: The share of the step that time in the system is worth a thought from. By choice.
_MUCH_OF_A_STEP = 0.05
#: Such a count or time is another one from twice as much on. By choice.
_TWICE = 2.0
#: A fault clears a page of at most 2 MiB (huge pages of x86 and of ARM), at a tenth or more of the rate at which the
#: device's memory is written. A tenth by choice: it only keeps the system's other work out.
_HUGE_PAGE, _SLOWEST = 2.0**21, 0.1
#: glibc's malloc told to keep what was freed: no block is mapped for itself, the heap is never trimmed, and grows by
#: 64 MiB at once.
_KEPT = dict(zip(MALLOC, ("0", str(1 << 40), str(1 << 26)), strict=True))


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Of what is left as much as the system itself took more time for the process.

    An op pays for the pages that it is the first to touch, and the host, between ops, for giving them back. Where the
    system's time was not recorded nothing is claimed: what a fault costs is the machine's own.
    """
    runs = attribution.comparison.a, attribution.comparison.b
    faults, system = of_both(attribution, "page_faults_per_step"), of_both(attribution, "system_seconds_per_step")
    many = _far_apart(faults, _MANY_FAULTS)
    slow = _far_apart(system, _MUCH_OF_A_STEP * attribution.wall) and (faults is None or _far_apart(faults, 1))
    if system is None or not (many or slow):
        return
    cost = system[0] - system[1]
    written = runs[0].device.rate("dram.write")
    if faults is not None and written:  # the system does other things as well, such as waking threads
        most = _HUGE_PAGE / (_SLOWEST * written) * (faults[0] - faults[1])
        cost = min(max(cost, min(0.0, most)), max(0.0, most))
    rows = left(attribution, ALL)
    gaps = attribution.gap_a * _awake(runs[0]), attribution.gap_b * _awake(runs[1])
    slower = float((attribution.a.seconds[rows[0]] * attribution.left_a[rows[0]]).sum())
    slower -= float((attribution.b.seconds[rows[1]] * attribution.left_b[rows[1]]).sum())
    slower += gaps[0] * runs[0].gap - gaps[1] * runs[1].gap
    if slower * cost <= 0:
        return  # the run that fetches more is not the slower one
    part = min(1.0, cost / slower)
    told = [f"{count:,.0f} page faults" for count in faults or ()]
    if not many:
        times = [f"{counter(value)} of the system's time" for value in system]
        told = [f"{time} in {count}" for time, count in zip(times, told, strict=True)] if told else times
    about = {"a": told[0], "b": told[1]}
    yield replace(Claim("allocation", *rows, part * gaps[0], part * gaps[1], about=about), part_a=part, part_b=part)


def _awake(run: Analysis) -> float:
    """The share of a run's gap in which the host cannot have slept."""
    away = run.profile.conditions.get(AWAY)
    return max(0.0, 1 - away / run.gap) if away is not None and run.gap > 0 else 1.0


def _far_apart(values: tuple[float, float] | None, least: float) -> bool:
    """Whether one of two values is at least `_TWICE` the other, and more by `least`."""
    return values is not None and abs(values[0] - values[1]) >= least and max(values) >= _TWICE * min(values)


def sentence(facts: Facts) -> str:
    """Page faults of both runs, or the system's time."""
    return (
        f"{opening(facts, 'memory that it fetches from the system anew')}: {facts.about_more} per step against "
        f"{facts.about_less}; a page is cleared when it is first written."
    )


def setting(mine: Profile, other: Profile) -> Setting | None:
    """Freed memory kept, so that the next step finds its pages mapped."""
    if mine.device.kind != "cpu" or any(name in mine.environment for name in MALLOC):
        return None
    return Setting(
        text="freed memory given back -> kept",
        moves=tuple(f"environment {name}" for name in MALLOC),
        variables=_KEPT,
    )


CAUSE = Cause(
    name="allocation",
    claim=claim,
    after=("hardware",),
    sentence=sentence,
    advice="reuse buffers (out=, in-place ops), or an allocator that keeps its pages (jemalloc, tcmalloc)",
    label="memory fetched anew",
    setting=setting,
)
