"""Say which of two runs is faster, as far as they tell (docs/comparing.md, Which run is faster).

Runs that took turns have the interval of these. That of others holds what steps of one process differ by, what
processes differ by, and what either run waited for a core; of them none is called slower, only that it took longer.
"""

from __future__ import annotations

import math

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
    measured = _counted(paired.number, "turn")
    return _headline(names, (paired.a, paired.b), paired.ci95, paired.busy, measured, turns=paired.number)


def _as_recorded(comparison: Comparison, names: tuple[str, str]) -> Headline:
    """Say it of runs that took no turns.

    What processes differ by is in the interval of the comparison for a run of several, and added for one alone.
    """
    a, b = comparison.a, comparison.b
    known, difference = comparison.ci95 is not None, comparison.difference
    low, high = comparison.ci95 or (difference, difference)
    apart = [PROCESSES * run.wall for run in (a, b) if not run.profile.wall.processes]
    low, high = difference - math.hypot(difference - low, *apart), difference + math.hypot(high - difference, *apart)
    waited = [waited_for_a_core(run.profile.conditions) or 0.0 for run in (a, b)]
    waiting = [f"{name} {units.seconds(time)}" for name, time in zip(names, waited, strict=True) if time]
    by_waiting = f" Of a step, {' and '.join(waiting)} was spent waiting for a core."
    head = _headline(
        names,
        (a.wall, b.wall),
        (low - waited[0], high + waited[1]),
        ("contended" in map(slug, a.flags), "contended" in map(slug, b.flags)),
        _processes(a, b) + ("" if known else "; a run has fewer than 3 steps"),
        why="" if low <= 0 <= high else by_waiting,
    )
    return head if known else msgspec.structs.replace(head, ci95=None, factor_ci95=None)


def _headline(
    names: tuple[str, str],
    walls: tuple[float, float],
    ci95: Interval,
    busy: tuple[bool, bool],
    measured: str,
    *,
    turns: int = 0,
    why: str = "",
) -> Headline:
    """Make the headline of two times [s]. measured: in what. why: a sentence for runs that do not say it, if any."""
    difference = walls[0] - walls[1]
    times = f"{names[0]} took {units.seconds(walls[0])} a step and {names[1]} {units.seconds(walls[1])}"
    low, high = ci95 if difference >= 0 else (-ci95[1], -ci95[0])
    apart = f"difference {units.seconds(abs(difference))}, 95 % CI {units.seconds_between(low, high)}, {measured}"
    slower: int | None = None
    if any(busy):
        were = " and ".join(name for name, was in zip(names, busy, strict=True) if was)
        were += f" {'were' if all(busy) else 'was'} measured on a busy machine"
        text = f"{were}, so these runs do not say which is faster: {times}."
    elif ci95[0] <= 0 <= ci95[1]:
        text = f"These runs do not say which is faster: {times}, {apart}.{why}"
    else:
        slower, faster = (0, 1) if difference > 0 else (1, 0)
        ratio, against = _times(walls[slower] / walls[faster]), _against(walls[slower], walls[faster])
        if turns:
            text = f"{names[slower]} is {ratio} slower than {names[faster]}: {against} a step, {apart}."
        else:
            text = f"{names[slower]} took {ratio} longer than {names[faster]} in these two runs"
            text += f" ({against} a step, {measured})."
    size = math.sqrt(walls[0] * walls[1])
    return Headline(
        settled=slower is not None if turns else None,
        factor=walls[0] / walls[1],
        factor_ci95=(ratio_apart(ci95[0], size), ratio_apart(ci95[1], size)),
        difference=difference,
        ci95=ci95,
        turns=turns,
        text=text,
        slower=slower,
    )


def _times(ratio: float) -> str:
    """Write how many times longer: 1.83x, 12.3x."""
    return f"{ratio:.2f}x" if ratio < 2 else f"{units.significant(ratio)}x"


def _against(one: float, other: float) -> str:
    """Write two times [s] with one unit where they share it: "288 against 141 ms"."""
    first, second = units.seconds(one), units.seconds(other)
    number, _, unit = first.partition(" ")
    return f"{number if second.endswith(f' {unit}') else first} against {second}"


def _processes(a: Analysis, b: Analysis) -> str:
    """Say in how many processes the runs were timed."""
    word = "run" if a.profile.imported or b.profile.imported else "process"
    numbers = [1 + len(run.profile.wall.processes) for run in (a, b)]
    if numbers[0] != numbers[1]:
        return f"{numbers[0]} and {_counted(numbers[1], word)}"
    return f"one {word} each" if numbers[0] == 1 else f"{_counted(numbers[0], word)} each"


def _counted(number: int, word: str) -> str:
    plural = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"
