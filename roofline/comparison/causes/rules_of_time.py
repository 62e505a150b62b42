"""Rules about the same work in another time: other conditions, other hardware, other rates, and the gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.floors import ATTAINED
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import NONE, Claim, Entry, Rows
from roofline.comparison.causes.select import VECTOR, first_time, left, of_classes, only_one_does, pairs_of
from roofline.comparison.host_reads import for_the_host
from roofline.comparison.host_time import A_READ
from roofline.comparison.matching import ANCHORS
from roofline.core.schema import Profile
from roofline.units import seconds

#: All that runs on the device, collectives and copies from and to the host aside.
ALL = VECTOR | ANCHORS | {"optimizer"}
#: Results that the host reads in a step (`.item()`), where that was recorded.
_READS = "host_reads_per_step"
#: What a step spends on compiling programs anew [s], where that was recorded.
_COMPILING = "compiling_seconds_per_step"
#: Where the profiled steps say that the host waited for the device.
_SYNCHRONISATION = "synchronisation"
#: Page faults per step that are worth a thought: 256 of them are 1 MiB of fresh pages of 4 KiB. And time in the system.
_MANY_FAULTS, _MUCH_OF_A_STEP = 256.0, 0.05
#: What a fault costs, with giving the page back [s]: 1.7 us were measured (docs/plants.md).
_A_FAULT = 2e-6
#: What a fault is given at most [s]: a page of 2 MiB, cleared at 4 GB/s, a tenth of what one core here writes.
_A_HUGE_FAULT = 500e-6
#: So many times as many programs are another way to dispatch a step.
MORE_PROGRAMS = 1.5
#: What reading one result costs a host at most [s].
_A_READ = A_READ * 1e-9
#: Between this share and its complement time on a core is neither most nor little of it.
_PARTLY = 0.25
#: What ops take longer after others is a consequence of those up to this part of what those take.
_CONSEQUENCE = 0.5


def communication(attribution: Attribution) -> Iterator[Claim]:
    """Collectives between devices."""
    yield Claim("communication", *attribution.rows(lambda some: of_classes(some, {"communication"})))


def synchronisation(attribution: Attribution) -> Iterator[Claim]:
    """Results read by the host, copies from and to it, and time in which the host waited for the device.

    What is computed only to be read belongs to it.
    """
    for a, b in only_one_does(attribution, "transfer"):
        yield Claim("synchronisation", a, b, host=True)
    yield from _computed_to_be_read(attribution)
    reads, shares = [host.reads for host in attribution.host], attribution.reading
    more = shares[0] * attribution.comparison.a.gap - shares[1] * attribution.comparison.b.gap
    if attribution.one_executor and (reads[0] - reads[1]) * more > 0:
        about = {"a": f"{reads[0]:.0f}", "b": f"{reads[1]:.0f}"}
        yield Claim("synchronisation", NONE, NONE, *shares, about=about)
    read = attribution.rows(lambda some: of_classes(some, {"transfer"}))
    waited = attribution.waited(_SYNCHRONISATION)
    yield Claim("synchronisation", read[0], read[1], waited[0], waited[1], host=True)


def _computed_to_be_read(attribution: Attribution) -> Iterator[Claim]:
    """On a CPU a read is no op. Where one run reads more, ops that only it has and of which only numbers are made."""
    reads = _recorded(attribution, _READS)
    if reads is None or reads[0] == reads[1] or not attribution.matching.alike:
        return
    reader = int(reads[1] > reads[0])
    side = (attribution.a, attribution.b)[reader]
    alone = np.concatenate([NONE, *((hunk.a, hunk.b)[reader] for hunk in attribution.matching.hunks)])
    rows = alone[np.asarray(for_the_host(side.analysis.profile), bool)[side.segments.op[alone]]]
    if len(rows):
        a, b = (NONE, rows) if reader else (rows, NONE)
        yield Claim("synchronisation", a, b, host=True)


def waiting(attribution: Attribution) -> Iterator[Claim]:
    """What is known of a gap besides dispatch: input, compilation, collectives."""
    for cause, rule in (
        ("communication wait", "communication"),
        ("data input", "data-input"),
        ("graph break/compilation", "compilation"),
    ):
        a, b = attribution.waited(cause)
        if a or b:
            yield Claim(rule, NONE, NONE, a, b)
    compiling = _recorded(attribution, _COMPILING)
    if compiling is not None and compiling[0] != compiling[1]:
        runs = attribution.comparison.a, attribution.comparison.b
        a, b = (seconds / run.gap if run.gap > 0 else 0.0 for seconds, run in zip(compiling, runs, strict=True))
        yield Claim("compilation", NONE, NONE, a, b)


def threads(attribution: Attribution) -> Iterator[Claim]:
    """The same ops on another number of threads."""
    runs = attribution.comparison.a, attribution.comparison.b
    counts = [_threads(run.profile) for run in runs]
    if all(run.device.kind == "cpu" for run in runs) and None not in counts and counts[0] != counts[1]:
        about = {"a": str(counts[0]), "b": str(counts[1])}
        yield Claim("threads", attribution.matching.pairs_a, attribution.matching.pairs_b, about=about)


def _threads(profile: Profile) -> str | None:
    return profile.environment.get("threads")


def hardware(attribution: Attribution) -> Iterator[Claim]:
    """The same ops under the ceilings of another device.

    Where both runs attain half of their roofs, time is floor times what it misses the floor by, t = f x, and
    t_A - t_B splits symmetrically: (f_A - f_B) (x_A + x_B) / 2 is the devices', which is (f_A - f_B) / 2 f_A of the
    time of A less (f_B - f_A) / 2 f_B of that of B. Far below its roof a kernel does not wait for it, and the devices'
    part is what the floors differ by. The rest is left to whatever else explains it.
    """
    if not attribution.comparison.hardware_differs:
        return
    for classes in (ANCHORS, ALL - ANCHORS):
        a, b = pairs_of(attribution, classes)
        floors = float(attribution.a.segments.floor[a].sum()), float(attribution.b.segments.floor[b].sum())
        times = float(attribution.a.own[a].sum()), float(attribution.b.own[b].sum())
        if not all(floors) or not all(times):
            continue
        if all(floor >= ATTAINED * time for floor, time in zip(floors, times, strict=True)):
            apart = floors[0] - floors[1]
            yield Claim("hardware", a, b, part_a=apart / (2 * floors[0]), part_b=-apart / (2 * floors[1]))
        else:
            yield Claim("hardware", a, b, part_a=floors[0] / times[0], part_b=floors[1] / times[1])


def allocation(attribution: Attribution) -> Iterator[Claim]:
    """Memory that is fetched from the system anew in each step: the first touch of a page is a fault.

    An op pays for the pages that it is the first to touch, and the host, between ops, for giving them back. Of what is
    left it explains as much as the system itself took more time for the process, or by `_A_FAULT` for each fault where
    that was not recorded.
    """
    runs = attribution.comparison.a, attribution.comparison.b
    faults, system = _recorded(attribution, "page_faults_per_step"), _recorded(attribution, "system_seconds_per_step")
    many = _far_apart(faults, _MANY_FAULTS)
    slow = _far_apart(system, _MUCH_OF_A_STEP * attribution.wall) and (faults is None or _far_apart(faults, 1))
    if system is not None and (many or slow):
        cost = system[0] - system[1]
        if faults is not None:  # the system does other things as well, such as waking threads
            most = _A_HUGE_FAULT * (faults[0] - faults[1])
            cost = min(max(cost, min(0.0, most)), max(0.0, most))
    elif faults is not None and many:
        cost = _A_FAULT * (faults[0] - faults[1])
    else:
        return
    rows = left(attribution, ALL)
    gaps = attribution.gap_a * _awake(runs[0]), attribution.gap_b * _awake(runs[1])
    slower = float((attribution.a.seconds[rows[0]] * attribution.left_a[rows[0]]).sum())
    slower -= float((attribution.b.seconds[rows[1]] * attribution.left_b[rows[1]]).sum())
    slower += gaps[0] * runs[0].gap - gaps[1] * runs[1].gap
    if slower * cost <= 0:
        return  # the run that fetches more is not the slower one
    part = min(1.0, cost / slower)
    told = [f"{count:,.0f} page faults" for count in faults or ()]
    if system is not None and not many:
        times = [f"{seconds(value)} of the system's time" for value in system]
        told = [f"{time} in {count}" for time, count in zip(times, told, strict=True)] if told else times
    about = {"a": told[0], "b": told[1]}
    claim = Claim("allocation", *rows, part * gaps[0], part * gaps[1], about=about)
    yield replace(claim, part_a=part, part_b=part)


def _awake(run: Analysis) -> float:
    """The share of a run's gap in which the host cannot have slept."""
    away = run.profile.conditions.get("away_seconds_per_step")
    return max(0.0, 1 - away / run.gap) if away is not None and run.gap > 0 else 1.0


def _recorded(attribution: Attribution, condition: str) -> tuple[float, float] | None:
    """A condition of both runs; None where one of them did not record it."""
    a, b = (run.profile.conditions.get(condition) for run in (attribution.comparison.a, attribution.comparison.b))
    return None if a is None or b is None else (a, b)


def _far_apart(values: tuple[float, float] | None, least: float) -> bool:
    """Whether one of two values is at least twice the other, and more by `least`."""
    return values is not None and abs(values[0] - values[1]) >= least and max(values) >= 2 * min(values)


def after_idle(attribution: Attribution) -> Iterator[Claim]:
    """What an op takes longer right after the host did something else: its caches are cold, and a core that slept slow.

    Of ops that both runs have, and that only one of them is late for, beyond what is usual before an op in either.
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


def after_others(attribution: Attribution) -> Iterator[Claim]:
    """What an op takes longer, or less, right after ops that only one run has: likely, other caches.

    And what is computed again later takes longer at first, as it is kept track of: hooks run inside an op's event. Not
    where that were more than `_CONSEQUENCE` of what a cause takes itself: then it has another one.
    """
    if not (attribution.one_executor and attribution.matching.alike):
        return
    following = attribution.following()
    claims: dict[tuple[str, bool], list[Claim]] = {}
    for number, rows in [*following.items(), *_kept_track_of(attribution, [rows for rows, _ in following.values()])]:
        rule, slower = attribution.entries[number].claim.rule, attribution.seconds(attribution.entries[number]) > 0
        claims.setdefault((rule, slower), []).append(Claim(rule, *rows, after=number))
    itself: dict[tuple[str, bool], float] = {}
    for entry in attribution.entries:
        seconds = attribution.seconds(entry)
        itself[entry.claim.rule, seconds > 0] = itself.get((entry.claim.rule, seconds > 0), 0.0) + seconds
    for cause, each in claims.items():
        a, b = (np.concatenate(rows) for rows in ([claim.a for claim in each], [claim.b for claim in each]))
        later = float(attribution.a.seconds[a].sum() - attribution.b.seconds[b].sum())
        if abs(later) <= _CONSEQUENCE * abs(itself[cause]):
            yield from each


def _kept_track_of(attribution: Attribution, followers: Sequence[Rows]) -> Iterator[tuple[int, tuple[Rows, Rows]]]:
    """Of either run the first entry in which it computes again, by number, and what it did of that in the forward pass.

    As far as that is matched and not claimed. followers: segments of A that are claimed because they follow others.
    """
    taken = np.concatenate([NONE, *followers])
    for side in (0, 1):
        found = [
            number
            for number, entry in enumerate(attribution.entries)
            if entry.claim.rule == "recomputation" and (attribution.seconds(entry) < 0) == bool(side)
        ]
        if found:
            a, b = first_time(
                attribution, side, np.concatenate([_rows(attribution.entries[number], side) for number in found])
            )
            free = (attribution.left_a[a] == 1) & (attribution.left_b[b] == 1) & ~np.isin(a, taken)
            taken = np.concatenate([taken, a[free]])
            yield found[0], (a[free], b[free])


def _rows(entry: Entry, side: int) -> Rows:
    return entry.b if side else entry.a


def efficiency(attribution: Attribution) -> Iterator[Claim]:
    """The same work at another rate: other kernels, or the same ones that ran slower."""
    for name, classes in (("matmul", ANCHORS), ("vector", ALL)):
        yield Claim("efficiency", *left(attribution, classes), about={"of": name})


def host_bound(attribution: Attribution) -> Iterator[Claim]:
    """What is left of the gap: how the host dispatches, or what else it does while no op runs."""
    a, b = attribution.comparison.a, attribution.comparison.b
    rule, about = "host-bound", {}
    if attribution.one_executor:
        rule = "host-idle"
        more = attribution.gap_a * a.gap - attribution.gap_b * b.gap
        about = _asleep(attribution, more)
        reads, programs = _recorded(attribution, _READS), _recorded(attribution, "programs_per_step")
        # On a CPU reading a result waits for nothing: it is a little more Python, and no more than that is its cost.
        if reads is not None and attribution.reads_are_placed:  # an optimizer's own are not the step's
            reads = reads[0] - _of_optimizer(a.profile), reads[1] - _of_optimizer(b.profile)
        if reads is not None and reads[0] != reads[1] and 0 < more / (reads[0] - reads[1]) < _A_READ:
            rule, about = "synchronisation", {"a": f"{reads[0]:.0f}", "b": f"{reads[1]:.0f}"}
        if programs is not None and max(programs) > MORE_PROGRAMS * min(programs) > 0:
            rule, about = ("host-bound", {}) if (programs[0] - programs[1]) * more > 0 else (rule, about)
    else:
        # Between ops, and far longer than a dispatch: whatever dispatches, that is something else.
        between = [float(shares.sum()) for shares in attribution.besides]
        yield Claim("host-idle", NONE, NONE, between[0], between[1])
        if all(_overhead(analysis) > 0.5 for analysis in (a, b)):
            rule = "small-model"
    yield Claim(rule, NONE, NONE, attribution.gap_a, attribution.gap_b, about=about)


def _of_optimizer(profile: Profile) -> float:
    """How many results the optimizer reads before its ops."""
    phases = profile.phases
    return float(sum(op.host_reads or 0 for op in profile.ops if phases[op.phase] == "optimizer"))


def _asleep(attribution: Attribution, more: float) -> dict[str, str]:
    """Whether a host that spends so much more [s] is on a core meanwhile; nothing where that is not known.

    Of a thread among others it is not: it also waits for them.
    """
    away = _recorded(attribution, "away_seconds_per_step")
    alone = all(_threads(run.profile) == "1" for run in (attribution.comparison.a, attribution.comparison.b))
    if away is None or not alone or not more:
        return {}
    share = (away[0] - away[1]) / more
    if _PARTLY < share < 1 - _PARTLY:
        return {}
    told = {"a": seconds(away[0]), "b": seconds(away[1])}
    return told | {"host": "asleep" if share > _PARTLY else "awake"}


def _overhead(analysis: Analysis) -> float:
    """The share of a step in which the host dispatches or a launch is all that an op is."""
    return (analysis.gap + analysis.total.bounds["overhead"]) / analysis.wall
