"""Say which of two runs is faster, as far as they tell (docs/comparing.md, Which run is faster).

Runs that took turns have the interval of these. That of others holds what steps of one process differ by, what
processes differ by, what either run waited for a core, and what a machine that was slower in one of them may have
added; of them none is called slower, only that it took longer.
"""

from __future__ import annotations

import math
from statistics import fmean, median

import msgspec

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import FEWEST, Interval
from roofline.analysis.gap_parts import FOR_A_CORE
from roofline.comparison.machine_speed import PROCESSES, machine_speed
from roofline.comparison.terms import Comparison
from roofline.comparison.turns import RESOLUTION, Paired, ratio_apart, settle
from roofline.core.executor import waited_for_a_core
from roofline.core.schema import slug
from roofline.core.statistics import ROUNDING


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict which of two runs is faster.

    settled: whether turns in fresh processes tell; None where the runs took none together. factor: time of A / time of
    B, by the turns where there are some, else by all processes. ci95: of A - B [s], and factor_ci95: None below three
    steps of either. text: sentences; opening: the first of them, without brackets and full stop. slower: the number of
    the run said to be slower or to take longer; None: neither.
    """

    settled: bool | None
    factor: float
    factor_ci95: Interval | None
    ci95: Interval | None
    text: str
    opening: str
    slower: int | None = None


def headline(comparison: Comparison, names: tuple[str, str]) -> Headline:
    """Say which of two runs is faster; names: what the sentence calls them."""
    return judge_runs(comparison.a, comparison.b, comparison.ci95, names)


def judge_runs(a: Analysis, b: Analysis, ci95: Interval | None, names: tuple[str, str]) -> Headline:
    """Say which of two runs is faster. ci95: what steps, and processes of a run of several, vary A - B by [s]."""
    flags = [set(map(slug, run.flags)) for run in (a, b)]
    throttled = "throttled" in flags[0], "throttled" in flags[1]  # of their clocks turns say nothing
    paired = settle(a.profile, b.profile)
    if paired is not None:
        return in_turns(paired, names, throttled)
    low, high, walls = _interval(a, b, ci95)
    waited = [waited_for_a_core(run.profile.conditions) or 0.0 for run in (a, b)]
    busy = "contended" in flags[0], "contended" in flags[1]
    speed = machine_speed(a, b)
    slowed = (max(0.0, speed.seconds), max(0.0, -speed.seconds)) if speed.uneven else (0.0, 0.0)
    # A wait inside of ops makes them slower, and is not added twice; one between ops is no part of `slowed`.
    waits_between = [run.host_time.parts.get(FOR_A_CORE, 0.0) for run in (a, b)]
    added = [max(wait, slow + gap) for wait, slow, gap in zip(waited, slowed, waits_between, strict=True)]
    ends = low - added[0], high + added[1]
    recorded = Paired(a=walls[0], b=walls[1], ci95=ends, number=0, busy=busy, hopeless=False)
    several = ci95 and all(run.profile.wall.processes for run in (a, b))
    why = (
        ""
        if several
        else f" The interval holds the {units.percent(PROCESSES, 0)} by which processes of one step differ."
    )
    if not low <= 0 <= high:  # where the runs do not say it, these are the reason
        causes = {"spent waiting for a core": waited, "due to a machine that was slower meanwhile": slowed}
        why = ""
        for cause, times in causes.items():
            parts = [f"{units.seconds(times[run])} of a step of {names[run]}" for run in (0, 1) if times[run]]
            why += f" Up to {' and '.join(parts)} may be {cause}." if parts else ""
    few = _few_steps(a, b, ci95 is not None)
    head = _headline(recorded, names, f"{_processes(a, b)}{few}", throttled, why)
    sources = [run.profile.wall.source for run in (a, b)]
    if sources[0] != sources[1]:
        profiled = names[1 if sources[0] == "plain" else 0]
        text = f"{head.text} {profiled} was timed under a profiler, which takes time."
        head = msgspec.structs.replace(head, text=text)
    return head if ci95 else msgspec.structs.replace(head, ci95=None, factor_ci95=None)


def times_as_long(a: Analysis, b: Analysis) -> float:
    """Return time of A / time of B, the factor of their headline: by the turns they took, else by all processes."""
    paired = settle(a.profile, b.profile)
    return _step_time(a) / _step_time(b) if paired is None else paired.a / paired.b


def factor_text(ratio: float) -> str:
    """Write how many times as long a run takes, never "1.00": 1.83x, 1.004x, 12.3x."""
    if ratio >= 2:
        return f"{units.significant(ratio)}x"
    apart = abs(ratio - 1)
    digits = max(2, math.ceil(-math.log10(apart))) if apart > ROUNDING else 2
    return f"{ratio:.{digits}f}x"


def longer_text(ratio: float, settled: bool | None) -> str:
    """Write it as a verdict: "1.83x slower", where turns settle it, else "took 1.83x longer"."""
    return f"{factor_text(ratio)} slower" if settled else f"took {factor_text(ratio)} longer"


def _medians(run: Analysis) -> list[float]:
    """Return the median step of each further process [s]."""
    return [median(steps) for steps in run.profile.wall.processes if steps]


def _step_time(run: Analysis) -> float:
    """Return a step [s], of several processes the geometric mean of their medians."""
    medians = _medians(run)
    return math.exp(fmean(map(math.log, (run.wall, *medians)))) if medians else run.wall


def _interval(a: Analysis, b: Analysis, ci95: Interval | None) -> tuple[float, float, list[float]]:
    """Return the interval of A - B, and a step of each [s].

    What processes differ by is added for a run of one, and where both have several, what no number of them tells apart.
    """
    times = [_step_time(run) for run in (a, b)]
    difference = times[0] - times[1]
    spreads = [PROCESSES * time for time, run in zip(times, (a, b), strict=True) if not (ci95 and _medians(run))]
    least = 0.0 if spreads else RESOLUTION * math.sqrt(times[0] * times[1])
    low, high = (max(0.0, difference - ci95[0]), max(0.0, ci95[1] - difference)) if ci95 else (0.0, 0.0)
    return difference - math.hypot(low, *spreads) - least, difference + math.hypot(high, *spreads) + least, times


def in_turns(paired: Paired, names: tuple[str, str], throttled: tuple[bool, bool] = (False, False)) -> Headline:
    """Say which of two steps is faster by turns that they took together; names: what the sentence calls them."""
    why = "" if paired.confirmed or not paired.sign else " It takes one more turn that says the same."
    return _headline(
        paired,
        names,
        f"both run anew {paired.number} times, in turns" if paired.number > 1 else "both run anew once, in turns",
        throttled,
        why,
    )


def _headline(
    paired: Paired, names: tuple[str, str], measured: str, throttled: tuple[bool, bool], why: str = ""
) -> Headline:
    """Make the headline. measured: in how many turns or processes. why: a sentence for runs that do not say it."""
    walls, difference = (paired.a, paired.b), paired.difference
    slower, faster = (0, 1) if difference > 0 else (1, 0)
    times = f"{names[0]} took {units.seconds(walls[0])} a step and {names[1]} {units.seconds(walls[1])}"
    low, high = paired.ci95 if slower == 0 else (-paired.ci95[1], -paired.ci95[0])
    ci95 = f"95 % CI {units.seconds_between(low, high)}"
    against = _against(walls[slower], walls[faster])
    doubts = [busy or held for busy, held in zip(paired.busy, throttled, strict=True)]
    says = paired.confirmed and paired.sign != 0
    settled = says and not any(doubts)
    reasons = _disturbed(paired.busy, throttled, names)
    if says and doubts[faster] and not doubts[slower]:  # undisturbed, the faster one would take less still
        opening = f"{names[slower]} took longer than {names[faster]}: {against} a step, {measured}"
        text = f"{opening}. The times of {names[faster]} are too long, if anything: {reasons}."
    elif any(doubts):
        reasons = (
            f"but {reasons}, which may be why they differ, in part or wholly" if doubts[slower] else f"and {reasons}"
        )
        opening = f"These runs do not say which is faster: {times}, {measured}, {reasons}"
        text = f"{opening}."
    elif not settled:
        zero = "" if paired.sign else ", which includes 0"
        opening = f"These runs do not say which is faster: {times}, {measured}"
        text = f"{opening}. {names[slower]} − {names[faster]} is {units.seconds(abs(difference))}, {ci95}{zero}.{why}"
    else:
        longer = longer_text(walls[slower] / walls[faster], settled=paired.number > 0)
        if paired.number:
            opening = f"{names[slower]} is {longer} than {names[faster]}: {against} a step, difference "
            opening += f"{units.seconds(abs(difference))}, {ci95}, {measured}"
            text = f"{opening}."
        else:
            opening = f"{names[slower]} {longer} than {names[faster]} in these two runs"
            text = f"{opening} ({against} a step, {measured})."
    size = math.sqrt(walls[0] * walls[1])
    return Headline(
        settled=settled if paired.number else None,
        factor=walls[0] / walls[1],
        factor_ci95=(ratio_apart(paired.ci95[0], size), ratio_apart(paired.ci95[1], size)),
        ci95=paired.ci95,
        text=text,
        opening=opening,
        slower=slower if says and not doubts[slower] else None,
    )


def _disturbed(busy: tuple[bool, bool], throttled: tuple[bool, bool], names: tuple[str, str]) -> str:
    """Say what makes the times of some runs too long."""
    causes = {"other programs ran beside": busy, "the device's clock was held back in": throttled}
    runs = {(True, True): "both", (True, False): names[0], (False, True): names[1]}
    return " and ".join(f"{cause} {runs[held]}" for cause, held in causes.items() if any(held))


def _against(slower: float, faster: float) -> str:
    """Write two times [s] with one unit where they share it: "288 against 141 ms"."""
    first, second = units.seconds(slower), units.seconds(faster)
    number, _, unit = first.partition(" ")
    return f"{number if second.endswith(f' {unit}') else first} against {second}"


def _few_steps(a: Analysis, b: Analysis, has_interval: bool) -> str:
    """Say which of two runs have too few steps to tell how far these vary, and what tells it where there is a CI."""
    short = [len(run.profile.wall.steps) < FEWEST for run in (a, b)]
    if not any(short):
        return ""
    words = f", {'' if all(short) else 'one '}of fewer than {FEWEST} steps"
    return f"{words}; how far steps vary is estimated from calls of one op within a step" if has_interval else words


def _processes(a: Analysis, b: Analysis) -> str:
    """Say in how many processes the runs were timed; of several, the times are their means."""
    singular, plural = ("run", "runs") if a.profile.imported or b.profile.imported else ("process", "processes")
    number_a, number_b = [1 + len(run.profile.wall.processes) for run in (a, b)]
    if number_a == number_b:
        return f"one {singular} each" if number_a == 1 else f"means of {number_a} {plural} each"
    return f"means of {number_a} and {number_b} {singular if number_b == 1 else plural}"
