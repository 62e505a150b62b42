"""Memory that is fetched from the system anew in each step: the first touch of a page is a fault."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim
from roofline.comparison.causes.conditions import of_both
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import counter, opening
from roofline.comparison.causes.select import ALL, left
from roofline.comparison.causes.time.after_others import CONSEQUENCE
from roofline.comparison.terms import Side
from roofline.core.executor import AWAY
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
#: The smallest page, and the share of what is fetched that a cause has to write to be whose pages they are. By choice.
_PAGE, _FOR_THEM = 4096.0, 0.5
#: From one process of the same program to the next ops take up to so much longer; as in findings.py. By choice.
_NOISE = 0.25
#: glibc's malloc told to keep what was freed: no block is mapped for itself, the heap is never trimmed, and grows by
#: 64 MiB at once.
_KEPT = dict(zip(MALLOC, ("0", str(1 << 40), str(1 << 26)), strict=True))


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Of what is left as much as the system itself took more time for the process.

    An op pays for the pages that it is the first to touch, and the host, between ops, for giving them back. Where the
    system's time was not recorded nothing is claimed: what a fault costs is the machine's own. Where another cause
    writes the new bytes, what their pages cost is part of that one.
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
    times = [
        float((side.seconds[some] * parts[some]).sum())
        for side, some, parts in zip(
            (attribution.a, attribution.b), rows, (attribution.left_a, attribution.left_b), strict=True
        )
    ]
    slower = times[0] - times[1] + gaps[0] * runs[0].gap - gaps[1] * runs[1].gap
    # No more than what is left is told: what else the system took is inside of what other causes have.
    told = min(cost, slower) if cost > 0 else max(cost, slower)
    owner = None if _told_apart(runs) else _writer(attribution, faults, told)
    if owner is None and _by_chance(attribution, times):
        rows, times = (NONE, NONE), [0.0, 0.0]
    slower = times[0] - times[1] + gaps[0] * runs[0].gap - gaps[1] * runs[1].gap
    if slower * cost <= 0:
        return  # the run that fetches more is not the slower one
    part = min(1.0, cost / slower)
    if owner is not None:
        name = attribution.entries[owner].claim.rule
        yield Claim(name, *rows, part * gaps[0], part * gaps[1], part_a=part, part_b=part, after=owner)
        return
    words = [f"{count:,.0f} page faults" for count in faults or ()]
    if not many:
        times_told = [f"{counter(value)} of the system's time" for value in system]
        words = [f"{time} in {count}" for time, count in zip(times_told, words, strict=True)] if words else times_told
    about = {"a": words[0], "b": words[1]}
    yield Claim("allocation", *rows, part * gaps[0], part * gaps[1], part_a=part, part_b=part, about=about)


def _told_apart(runs: tuple[Analysis, Analysis]) -> bool:
    """Whether the C library was told to keep freed memory in one run, and in the other one not as much."""
    a, b = ({name: run.profile.environment.get(name) for name in MALLOC} for run in runs)
    return a != b


def _writer(attribution: Attribution, faults: tuple[float, float] | None, cost: float) -> int | None:
    """The first entry of the cause that writes what the pages are fetched for; None where none writes as much.

    A cause that writes more new bytes than the other run, for half of the pages or more, has fetched them: that they
    cost a fault is no second cause. Which one it is where there are several: the one that writes the most. Not where
    the pages cost more than half of what that takes itself: then it has another cause. cost: of the pages [s].
    """
    if faults is None or faults[0] == faults[1]:
        return None
    sign = 1 if faults[0] > faults[1] else -1
    news, itself = dict[str, float](), dict[str, float]()
    for entry in attribution.entries:
        name, seconds = entry.claim.rule, sign * attribution.seconds(entry)
        written = _written(attribution.a, entry.a, entry.parts_a) - _written(attribution.b, entry.b, entry.parts_b)
        if seconds > 0:
            news[name] = news.get(name, 0.0) + max(0.0, sign * written)
            itself[name] = itself.get(name, 0.0) + seconds
    most = max(news, key=news.__getitem__, default=None)
    pages = _PAGE * abs(faults[0] - faults[1])
    if most is None or sum(news.values()) < _FOR_THEM * pages or sign * cost > CONSEQUENCE * itself[most]:
        return None
    return next(number for number, entry in enumerate(attribution.entries) if entry.claim.rule == most)


def _written(side: Side, rows: Rows, parts: Array) -> float:
    """The bytes that some segments write, as far as they are known."""
    segments = side.segments
    shares = [
        (cost.bytes_written or 0.0) / cost.bytes if (cost := segments.signature[row].cost).bytes else 0.0
        for row in rows.tolist()
    ]
    return float(np.nansum(segments.bytes[rows] * np.asarray(shares, np.float64) * parts))


def _by_chance(attribution: Attribution, times: list[float]) -> bool:
    """Whether what the same ops take longer is what one process of a program takes longer than another.

    times: of the ops of both runs that no cause has [s]. Of two processes of one program, with memory managed alike,
    one may find its pages mapped and the other one not; of two programs the ops that both have differ less.
    """
    a, b = attribution.comparison.a, attribution.comparison.b
    if not attribution.one_executor or all(run.profile.wall.processes for run in (a, b)) or _told_apart((a, b)):
        return False
    return not attribution.matching.unmatched or abs(times[0] - times[1]) < _NOISE * max(times)


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
    after=("hardware", "fusion"),
    sentence=sentence,
    advice="reuse buffers (out=, in-place ops), or an allocator that keeps its pages (jemalloc, tcmalloc)",
    label="memory fetched anew",
    compilable=True,  # op by op each result is memory of its own
    setting=setting,
)
