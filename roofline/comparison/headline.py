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
    B, by the turns where there are some. ci95: of A - B [s], and factor_ci95: None below three steps of either. text:
    one sentence or two. slower: the number of the run that it calls slower, or says took longer; None: neither.
    """

    settled: bool | None
    factor: float
    factor_ci95: Interval | None
    ci95: Interval | None
    text: str
    slower: int | None = None


def headline(comparison: Comparison, names: tuple[str, str]) -> Headline:
    """Say which of two runs is faster; names: what the sentence calls them.

    What processes differ by is in the interval of the comparison for a run of several, and added for one alone.
    """
    paired = settle(comparison.a.profile, comparison.b.profile)
    if paired is not None:
        return in_turns(paired, names)
    a, b, difference = comparison.a, comparison.b, comparison.difference
    low, high = comparison.ci95 or (difference, difference)
    apart = [PROCESSES * run.wall for run in (a, b) if not run.profile.wall.processes]
    low, high = difference - math.hypot(difference - low, *apart), difference + math.hypot(high - difference, *apart)
    waited = [waited_for_a_core(run.profile.conditions) or 0.0 for run in (a, b)]
    recorded = Paired(
        a=a.wall,
        b=b.wall,
        ci95=(low - waited[0], high + waited[1]),
        number=0,
        busy=("contended" in map(slug, a.flags), "contended" in map(slug, b.flags)),
        hopeless=False,
    )
    why = ""
    if not low <= 0 <= high:  # where the runs do not say it, waiting is the reason
        waiting = [f"{name} {units.seconds(time)}" for name, time in zip(names, waited, strict=True) if time]
        why = f" Of a step, {' and '.join(waiting)} was spent waiting for a core."
    if comparison.ci95 is not None:
        return _headline(recorded, names, _processes(a, b), why)
    head = _headline(recorded, names, f"{_processes(a, b)}; a run has fewer than 3 steps", why)
    return msgspec.structs.replace(head, ci95=None, factor_ci95=None)


def in_turns(paired: Paired, names: tuple[str, str]) -> Headline:
    """Say which of two steps is faster by turns that they took together; names: what the sentence calls them."""
    return _headline(paired, names, _counted(paired.number, "turn"))


def _headline(paired: Paired, names: tuple[str, str], measured: str, why: str = "") -> Headline:
    """Make the headline. measured: in how many turns or processes. why: a sentence for runs that do not say it."""
    walls, difference = (paired.a, paired.b), paired.difference
    times = f"{names[0]} took {units.seconds(walls[0])} a step and {names[1]} {units.seconds(walls[1])}"
    low, high = paired.ci95 if difference >= 0 else (-paired.ci95[1], -paired.ci95[0])
    apart = f"difference {units.seconds(abs(difference))}, 95 % CI {units.seconds_between(low, high)}, {measured}"
    slower: int | None = None
    if any(paired.busy):
        were = " and ".join(name for name, was in zip(names, paired.busy, strict=True) if was)
        were += f" {'were' if all(paired.busy) else 'was'} measured on a busy machine"
        text = f"{were}, so these runs do not say which is faster: {times}."
    elif not paired.settled:
        text = f"These runs do not say which is faster: {times}, {apart}.{why}"
    else:
        slower, faster = (0, 1) if difference > 0 else (1, 0)
        ratio, against = walls[slower] / walls[faster], _against(walls[slower], walls[faster])
        factor = f"{ratio:.2f}x" if ratio < 2 else f"{units.significant(ratio)}x"
        if paired.number:
            text = f"{names[slower]} is {factor} slower than {names[faster]}: {against} a step, {apart}."
        else:
            text = f"{names[slower]} took {factor} longer than {names[faster]} in these two runs"
            text += f" ({against} a step, {measured})."
    size = math.sqrt(walls[0] * walls[1])
    return Headline(
        settled=paired.settled if paired.number else None,
        factor=walls[0] / walls[1],
        factor_ci95=(ratio_apart(paired.ci95[0], size), ratio_apart(paired.ci95[1], size)),
        ci95=paired.ci95,
        text=text,
        slower=slower,
    )


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
