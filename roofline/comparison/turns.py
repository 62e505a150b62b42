"""Judge two steps by the turns that they took in fresh processes (docs/comparing.md, Runs in turns).

    d = log(time of A / time of B) of each turn
    interval = mean(d) +- t s(d) / sqrt(n) +- RESOLUTION, and beyond it what either waited for a core

t is that of 95 % over all times that turns are judged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev

from roofline.analysis.bootstrap import FEWEST, Interval
from roofline.core import statistics
from roofline.core.schema import Profile, Turns

#: Turns that are taken at most; they are judged from `FEWEST` on.
MOST = 12
#: What no number of turns tells apart, as a share.
RESOLUTION = 0.01
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Paired:
    """Two steps side by side. a, b: their times [s], in turns the geometric means of these. ci95: of a - b [s].

    number: of turns that count; 0: they took none. busy: whether other programs used the cores of either in too many of
    them. hopeless: whether no number of turns will settle it, as far as these tell.
    """

    a: float
    b: float
    ci95: Interval
    number: int
    busy: tuple[bool, bool]
    hopeless: bool

    @property
    def difference(self) -> float:
        """Return a - b [s]."""
        return self.a - self.b

    @property
    def settled(self) -> bool:
        """Whether these times tell which of the two is faster."""
        return not any(self.busy) and not self.ci95[0] <= 0 <= self.ci95[1]


def settle(a: Profile, b: Profile) -> Paired | None:
    """Judge the last turns that two steps took together; None where they did not take enough."""
    others = {turns.token: turns for turns in b.wall.turns}
    for turns in reversed(a.wall.turns):
        if turns.token in others:
            return judge_turns(turns, others[turns.token])
    return None


def judge_turns(a: Turns, b: Turns) -> Paired | None:
    """Judge turns that two steps took together; None for fewer than `FEWEST` turns of both.

    Turns that other programs disturbed do not count where enough others are left.
    """
    medians = enumerate(zip(a.medians, b.medians, strict=False))
    both = {turn: (one, other) for turn, (one, other) in medians if one and other}
    if len(both) < FEWEST:
        return None
    quiet = {turn: times for turn, times in both.items() if not (a.disturbed[turn] or b.disturbed[turn])}
    counted = quiet if len(quiet) >= FEWEST else both
    logs = [math.log(one / other) for one, other in counted.values()]
    middle, spread, number = fmean(logs), stdev(logs), len(logs)
    means = [math.exp(fmean(map(math.log, times))) for times in zip(*counted.values(), strict=True)]
    waited = [fmean(turns.waited[turn] or 0.0 for turn in counted) for turns in (a, b)]
    busy = any(a.disturbed[turn] for turn in counted), any(b.disturbed[turn] for turn in counted)
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
        hopeless=len(both) - len(quiet) >= FEWEST if any(busy) else least <= waited[0 if middle > 0 else 1],
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
