"""Tell two steps apart that took turns in fresh processes: A B B A A B (docs/comparing.md).

    d = log(time of A / time of B) of each turn
    interval = mean(d) +- t s(d) / sqrt(n) +- RESOLUTION, and beyond it what either waited for a core

Turns are judged again and again until they settle it, so that t is that of 95 % over all these judgements: each has its
part of the 5 % (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, stdev

from roofline.analysis.bootstrap import FEWEST, Interval
from roofline.core import statistics
from roofline.core.schema import Profile, Turns

#: Turns that are taken at most; they are judged from `FEWEST` on.
MOST = 12
#: What no number of turns tells apart, as a share: names of files and variables alone move a program in memory, and
#: make the same one slower or faster (Mytkowicz et al., Producing wrong data, ASPLOS 2009).
RESOLUTION = 0.01
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a turn: the median of its plain steps, what a thread of it waited for a core per step [s], and
    whether other programs used its cores."""

    median: float
    waited: float
    disturbed: bool


@dataclass(frozen=True, slots=True)
class Paired:
    """Two steps in the same turns. a, b: geometric means over the turns [s]. ci95: of a - b [s].

    number: of turns that count. busy: whether other programs used the cores of either in too many of them.
    hopeless: whether no number of turns will settle it, as far as these tell.
    """

    a: float
    b: float
    ci95: Interval
    number: int
    busy: tuple[bool, bool]
    hopeless: bool

    @property
    def settled(self) -> bool:
        """Whether the turns tell which of the two is faster."""
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
    both = list(_common(a, b))
    if len(both) < FEWEST:
        return None
    quiet = [(one, other) for one, other in both if not (one.disturbed or other.disturbed)]
    counted = quiet if len(quiet) >= FEWEST else both
    logs = [math.log(one.median / other.median) for one, other in counted]
    middle, spread, number = fmean(logs), stdev(logs), len(logs)
    means = [math.exp(fmean(math.log(run.median) for run in runs)) for runs in zip(*counted, strict=True)]
    waited = [fmean(run.waited for run in runs) for runs in zip(*counted, strict=True)]
    disturbed = len(both) - len(quiet)
    busy = [counted is both and any(run.disturbed for run in runs) for runs in zip(*both, strict=True)]
    size, half = math.sqrt(means[0] * means[1]), _half(spread, number)
    # The far end of what these turns allow, told by an interval as narrow as the last turn would leave it.
    far = abs(middle) + statistics.student(number - 1, _LEVEL) * spread / math.sqrt(number)
    least = seconds_apart(far - _half(spread, max(MOST, number)), size)
    return Paired(
        a=means[0],
        b=means[1],
        ci95=(seconds_apart(middle - half, size) - waited[0], seconds_apart(middle + half, size) + waited[1]),
        number=number,
        busy=(busy[0], busy[1]),
        hopeless=disturbed >= FEWEST if any(busy) else least <= waited[0 if middle > 0 else 1],
    )


def seconds_apart(log_ratio: float, size: float) -> float:
    """Return a - b [s] where log(a / b) and sqrt(a b) = size [s] are given."""
    return 2 * size * math.sinh(log_ratio / 2)


def ratio_apart(seconds: float, size: float) -> float:
    """Return a / b where a - b and sqrt(a b) = size are given [s]."""
    return math.exp(2 * math.asinh(seconds / (2 * size)))


def _half(spread: float, number: int) -> float:
    """Return half of the interval of a mean of logarithms, by their standard deviation."""
    level = 1 - (1 - _LEVEL) / (MOST - FEWEST + 1)
    return statistics.student(number - 1, level) * spread / math.sqrt(number) + RESOLUTION


def _common(a: Turns, b: Turns) -> Iterator[tuple[Process, Process]]:
    """Yield the processes of the turns in which both steps had one."""
    for one, other in zip(_processes(a), _processes(b), strict=False):
        if one is not None and other is not None:
            yield one, other


def _processes(turns: Turns) -> Iterator[Process | None]:
    for median, waited, disturbed in zip(turns.medians, turns.waited, turns.disturbed, strict=True):
        yield None if median is None else Process(median, waited or 0.0, disturbed)
