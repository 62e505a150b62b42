"""Judge two steps by the turns that they took in fresh processes (docs/comparing.md, Runs in turns).

    d = log(time of A / time of B) of each turn
    interval = mean(d) +- t s(d) / sqrt(n) +- RESOLUTION, and beyond it what either waited for a core

t is that of 95 % over all times that turns are judged. Two judgements in a row settle it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from roofline.analysis.bootstrap import FEWEST, Interval
from roofline.core import statistics
from roofline.core.schema import Profile, Turns

#: Turns that are taken at most; they are judged from `FEWEST` on, and settled from one more on.
MOST = 12
#: What no number of turns tells apart, as a share.
RESOLUTION = 0.01
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Paired:
    """Two steps side by side. a, b: their times [s], in turns the geometric means of these. ci95: of a - b [s].

    number: of turns that count; 0: they took none. busy: whether other programs used the cores of either in too many of
    them. hopeless: whether no number of turns will settle it, as far as these tell. confirmed: whether the turns
    without the last one tell the same, as a few turns may agree by chance.
    """

    a: float
    b: float
    ci95: Interval
    number: int
    busy: tuple[bool, bool]
    hopeless: bool
    confirmed: bool = True

    @property
    def difference(self) -> float:
        """Return a - b [s]."""
        return self.a - self.b

    @property
    def settled(self) -> bool:
        """Whether these times tell which of the two is faster."""
        return not any(self.busy) and self.confirmed and self.sign != 0

    @property
    def sign(self) -> int:
        """1 where A takes longer, -1 where B does, and 0 where the interval does not tell."""
        return (self.ci95[0] > 0) - (self.ci95[1] < 0)


def settle(a: Profile, b: Profile) -> Paired | None:
    """Judge the last turns that two steps took together; None where they did not take enough."""
    turns_b = {turns.token: turns for turns in b.wall.turns}
    for turns in reversed(a.wall.turns):
        if turns.token in turns_b:
            return judge_turns(turns, turns_b[turns.token])
    return None


def judge_turns(a: Turns, b: Turns) -> Paired | None:
    """Judge turns that two steps took together; None for fewer than `FEWEST` turns of both.

    Turns that other programs disturbed do not count where enough others are left.
    """
    medians = enumerate(zip(a.medians, b.medians, strict=False))
    paired_medians = {turn: (time_a, time_b) for turn, (time_a, time_b) in medians if time_a and time_b}
    if len(paired_medians) < FEWEST:
        return None
    quiet = {turn: times for turn, times in paired_medians.items() if not (a.disturbed[turn] or b.disturbed[turn])}
    counted = quiet if len(quiet) >= FEWEST else paired_medians
    busy = any(a.disturbed[turn] for turn in counted), any(b.disturbed[turn] for turn in counted)
    times = list(counted.items())
    paired = _judged(times, a, b, busy)
    before = _judged(times[:-1], a, b, busy) if len(times) > FEWEST else None
    hopeless = len(paired_medians) - len(quiet) >= FEWEST if any(busy) else paired.hopeless
    return replace(paired, hopeless=hopeless, confirmed=before is not None and before.sign == paired.sign)


def _judged(turns: Sequence[tuple[int, tuple[float, float]]], a: Turns, b: Turns, busy: tuple[bool, bool]) -> Paired:
    """Judge the times of both steps [s], by the number of their turn."""
    logs = [math.log(one / other) for _, (one, other) in turns]
    middle, number = fmean(logs), len(logs)
    spread = math.dist(logs, [middle] * number) / math.sqrt(number - 1)  # in floats: stdev() adds fractions
    means = [math.exp(fmean(map(math.log, times))) for times in zip(*(times for _, times in turns), strict=True)]
    waited = [fmean(one.waited[turn] or 0.0 for turn, _ in turns) for one in (a, b)]
    size, half = math.sqrt(means[0] * means[1]), _half(spread, number)
    # The far end of what these turns allow, told by an interval as narrow as the last turn would leave it.
    far = abs(middle) + statistics.student(number - 1, _LEVEL) * spread / math.sqrt(number)
    least = seconds_apart(far - _half(spread, max(MOST, number)), size)
    return Paired(
        a=means[0],
        b=means[1],
        ci95=(seconds_apart(middle - half, size) - waited[0], seconds_apart(middle + half, size) + waited[1]),
        number=number,
        busy=busy,
        hopeless=least <= waited[0 if middle > 0 else 1],
    )


def seconds_apart(log_ratio: float, size: float) -> float:
    """Return a - b [s] where log(a / b) and sqrt(a b) = size [s] are given."""
    return 2 * size * math.sinh(log_ratio / 2)


def ratio_apart(seconds: float, size: float) -> float:
    """Return a / b where a - b and sqrt(a b) = size are given [s]."""
    return math.exp(2 * math.asinh(seconds / (2 * size)))


def _half(spread: float, number: int) -> float:
    """Return half of the interval of a mean of logarithms, by their standard deviation."""
    level = 1 - (1 - _LEVEL) / (MOST - FEWEST + 1)  # each judgement has its part of the 5 % (Bonferroni)
    return statistics.student(number - 1, level) * spread / math.sqrt(number) + RESOLUTION
