"""Say which of two runs is faster, as far as they tell (docs/comparing.md).

    in turns                 "torch is 2.05x slower than jax": the interval of `turns`
    one process of each      "torch took 1.21x longer than jax in these two runs", and never that it is slower
    the interval holds 0     "These runs do not say which is faster"

The interval of runs that took no turns holds what steps of one process differ by, what processes differ by, and what
either run waited for a core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import Interval
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.terms import Comparison
from roofline.comparison.turns import Paired, ratio_apart, settle
from roofline.core.executor import waited_for_a_core
from roofline.core.schema import slug


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two runs is faster.

    settled: whether turns in fresh processes tell; None where the runs took none together. factor: time of A / time of
    B, by the turns where there are some. difference: time of A less that of B [s]. ci95, factor_ci95: None below three
    steps of either. turns: how many count; 0: the runs took none. text: one sentence or two. slower: the number of the
    run that it calls slower, or says took longer; None where it says neither.
    """

    settled: bool | None
    factor: float
    factor_ci95: Interval | None
    difference: float
    ci95: Interval | None
    turns: int
    text: str
    slower: int | None = None


def headline(comparison: Comparison, names: tuple[str, str]) -> Headline:
    """Say which of two runs is faster; names: what the sentence calls them."""
    paired = settle(comparison.a.profile, comparison.b.profile)
    return _as_recorded(comparison, names) if paired is None else in_turns(paired, names)


def in_turns(paired: Paired, names: tuple[str, str]) -> Headline:
    """Say which of two steps is faster by turns that they took together; names: what the sentence calls them."""
    walls, difference = (paired.a, paired.b), paired.a - paired.b
    measured = f"{_apart(difference, paired.ci95)}, {_counted(paired.number, 'turn')}"
    slower: int | None = None
    if any(paired.busy):
        text = _on_busy_machine(names, paired.busy, walls)
    elif paired.settled:
        slower, faster = (0, 1) if difference > 0 else (1, 0)
        ratio = _times(walls[slower] / walls[faster])
        times = against(walls[slower], walls[faster])
        text = f"{names[slower]} is {ratio} slower than {names[faster]}: {times} a step, {measured}."
    else:
        text = f"These runs do not say which is faster: {_each(names, walls)}, {measured}."
    return Headline(
        settled=paired.settled,
        factor=paired.a / paired.b,
        factor_ci95=_ratios(paired.ci95, walls),
        difference=difference,
        ci95=paired.ci95,
        turns=paired.number,
        text=text,
        slower=slower,
    )


def _as_recorded(comparison: Comparison, names: tuple[str, str]) -> Headline:
    runs = comparison.a, comparison.b
    walls, difference = (runs[0].wall, runs[1].wall), comparison.difference
    waited = [waited_for_a_core(run.profile.conditions) or 0.0 for run in runs]
    steps = _of_any_process(comparison)
    ci95 = (steps[0] - waited[0], steps[1] + waited[1])
    busy = ["contended" in map(slug, run.flags) for run in runs]
    measured = _processes(runs) + ("; a run has fewer than 3 steps" if comparison.ci95 is None else "")
    slower: int | None = None
    if any(busy):
        text = _on_busy_machine(names, (busy[0], busy[1]), walls)
    elif ci95[0] <= 0 <= ci95[1]:
        text = f"These runs do not say which is faster: {_each(names, walls)}, {_apart(difference, ci95)}, {measured}."
        if not steps[0] <= 0 <= steps[1]:  # it is the waiting that may have made the difference
            waiting = [f"{name} {units.seconds(time)}" for name, time in zip(names, waited, strict=True) if time]
            text += f" Of a step, {' and '.join(waiting)} was spent waiting for a core."
    else:
        slower, faster = (0, 1) if difference > 0 else (1, 0)
        times = against(walls[slower], walls[faster])
        text = (
            f"{names[slower]} took {_times(walls[slower] / walls[faster])} longer than {names[faster]} in these two "
            f"runs ({times} a step, {measured})."
        )
    known = comparison.ci95 is not None
    return Headline(
        settled=None,
        factor=walls[0] / walls[1],
        factor_ci95=_ratios(ci95, walls) if known else None,
        difference=difference,
        ci95=ci95 if known else None,
        turns=0,
        text=text,
        slower=slower,
    )


def _of_any_process(comparison: Comparison) -> Interval:
    """Return the interval of the difference [s], of any processes of both runs.

    Of a run of several processes the spread between them is in the interval of the comparison already.
    """
    difference = comparison.difference
    low, high = comparison.ci95 or (difference, difference)
    apart = [PROCESSES * run.wall for run in (comparison.a, comparison.b) if not run.profile.wall.processes]
    return difference - math.hypot(difference - low, *apart), difference + math.hypot(high - difference, *apart)


def _ratios(ci95: Interval, walls: tuple[float, float]) -> Interval:
    size = math.sqrt(walls[0] * walls[1])
    return ratio_apart(ci95[0], size), ratio_apart(ci95[1], size)


# ------------------------------------------------------------------------------------------------------------ words


def _times(ratio: float) -> str:
    """Write how many times longer: 1.83x, 12.3x."""
    return f"{ratio:.2f}x" if ratio < 2 else f"{units.significant(ratio)}x"


def against(one: float, other: float) -> str:
    """Write two times [s] with one unit where they share it: "288 against 141 ms"."""
    first, second = units.seconds(one), units.seconds(other)
    number, _, unit = first.partition(" ")
    return f"{number if second.endswith(f' {unit}') else first} against {second}"


def _on_busy_machine(names: tuple[str, str], busy: tuple[bool, bool], walls: tuple[float, float]) -> str:
    those = [name for name, was in zip(names, busy, strict=True) if was]
    were = f"{' and '.join(those)} {'were' if len(those) > 1 else 'was'} measured on a busy machine"
    return f"{were}, so these runs do not say which is faster: {_each(names, walls)}."


def _each(names: tuple[str, str], walls: tuple[float, float]) -> str:
    return f"{names[0]} took {units.seconds(walls[0])} a step and {names[1]} {units.seconds(walls[1])}"


def _apart(difference: float, ci95: Interval) -> str:
    """Say the difference without its sign, and its interval with the sign that fits."""
    low, high = ci95 if difference >= 0 else (-ci95[1], -ci95[0])
    return f"difference {units.seconds(abs(difference))}, 95 % CI {units.seconds_between(low, high)}"


def _processes(runs: Sequence[Analysis]) -> str:
    """Say in how many processes the runs were timed."""
    what = "run" if any(run.profile.imported for run in runs) else "process"
    numbers = [1 + len(run.profile.wall.processes) for run in runs]
    if numbers[0] != numbers[1]:
        return f"{numbers[0]} and {_counted(numbers[1], what)}"
    return f"one {what} each" if numbers[0] == 1 else f"{_counted(numbers[0], what)} each"


def _counted(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"
