"""Measure a ceiling: candidates take turns, the best rate wins, and its spread is saved.

Taking turns spreads a burst of somebody else's load over all candidates, so that it does not decide between
them; the best of many short turns is what the machine can do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Protocol

import msgspec

from roofline.core.device import Cache, Ceiling


@dataclass(frozen=True, slots=True)
class Candidate:
    """Hold a way of reaching a ceiling.

    work: of one call of `run` [FLOP, byte, evaluations].
    series: candidates that run the same code on different sizes; the smaller predict how long the larger take.
    """

    label: str
    work: float
    run: Callable[[], object]
    series: str = ""


@dataclass(frozen=True, slots=True)
class Best:
    """Hold the result of a candidate. `rate` [work/s]; `spread`: (best - median) / best over its `count` samples."""

    label: str
    rate: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold the result of a probe. `notes`: a sentence for each ceiling that could not be measured."""

    ceilings: dict[str, Ceiling] = field(default_factory=dict)
    caches: tuple[Cache, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)

    def under_load(self, waited: float) -> Finding:
        """Note at each ceiling the share of time in which others had the device (`Ceiling.waited`)."""
        share = round(waited, 3)
        noted = {name: msgspec.structs.replace(ceiling, waited=share) for name, ceiling in self.ceilings.items()}
        return replace(self, ceilings=noted)

    def joined(self, later: Finding) -> Finding:
        """Keep the best of both findings; cache sizes are the later one's, whose curve includes the earlier one's."""
        ceilings = dict(self.ceilings)
        for name, measured in later.ceilings.items():
            ceilings[name] = best_of(name, ceilings.get(name), measured)
        return Finding(ceilings, later.caches or self.caches, self.notes | later.notes)


@dataclass(frozen=True, slots=True)
class Probe:
    """Measure the ceilings `names`; `run` takes the wanted ones.

    busy: all threads work nearly all the time, so waiting shows the load of others, and the probe is then repeated.
    """

    names: tuple[str, ...]
    run: Callable[[Collection[str]], Finding]
    busy: bool = False


class Timer(Protocol):
    """Call `run` repeatedly for about `seconds`, at least once; return the times of the calls [s]."""

    def __call__(self, run: Callable[[], object], seconds: float) -> list[float]:
        """See the class."""


def wall(run: Callable[[], object], seconds: float) -> list[float]:
    """Time work that has ended when the call returns; a Timer."""
    times: list[float] = []
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        run()
        after = time.perf_counter()
        times.append(after - before)
        if after - start >= seconds or len(times) >= 10_000:
            return times


def fastest_first(candidates: Sequence[Candidate], seconds: float, timer: Timer = wall, rounds: int = 3) -> list[Best]:
    """Race the candidates that can be run within about `seconds` together; return them fastest first.

    In each series the smallest runs first. A larger one waits as long as, at the best rate of its series so far,
    one call would take a quarter of `seconds` (half-precision products are 100 times slower than others on some
    CPUs). After the first round only candidates near the fastest stay in the race.
    Candidates that raise are left out; if none remains, raises the first error.
    """
    waiting = sorted(candidates, key=lambda candidate: candidate.work)
    running: dict[str, Candidate] = {}
    times: dict[str, list[float]] = {}
    rates: dict[str, float] = {}
    failure: Exception | None = None
    for turn in range(rounds):
        for candidate in list(waiting):
            rate = rates.get(candidate.series)
            if rate and candidate.work / rate > seconds / 4:
                continue  # looked at again in the next round: a burst of load may have made the rate look low
            waiting.remove(candidate)
            try:
                durations = timer(candidate.run, 0.0)  # the first call allocates, packs weights, builds kernels
                if durations[0] < seconds / 20:
                    durations = timer(candidate.run, seconds / 100)
            except RuntimeError as error:  # torch: not implemented for this type, out of memory
                failure = failure or error
                continue
            running[candidate.label], times[candidate.label] = candidate, durations
            rates[candidate.series] = max(rate or 0.0, candidate.work / min(durations))
        if not running:
            raise failure or ValueError("a race needs candidates")
        fastest = max(rates.values())
        racing = [
            label
            for label, candidate in running.items()
            if turn == 0 or candidate.work / min(times[label]) > 0.6 * fastest
        ]
        share = seconds / (rounds * len(racing))
        for label in racing:
            if min(times[label]) < 4 * share:
                times[label] += timer(running[label].run, share)
                candidate = running[label]
                rates[candidate.series] = max(rates[candidate.series], candidate.work / min(times[label]))
    results = [
        Best(
            label=label,
            rate=running[label].work / min(durations),
            spread=1 - min(durations) / median(durations),  # rates: (1/min - 1/median) / (1/min)
            count=len(durations),
        )
        for label, durations in times.items()
    ]
    return sorted(results, key=lambda best: -best.rate)


def ceiling(best: Best, conditions: str, date: str) -> Ceiling:
    """Make a measured ceiling of the best result. `conditions`: the setup ("2 threads, torch 2.13")."""
    return Ceiling(
        value=best.rate,
        source=f"measured: {best.label}, best of {best.count}, {conditions}",
        spread=round(best.spread, 4),
        date=date,
    )


def best_of(name: str, earlier: Ceiling | None, later: Ceiling) -> Ceiling:
    """Keep the higher of two measured rates, or the shorter of two launch times, with the least waiting of both."""
    if earlier is None:
        return later
    best = min(earlier, later, key=lambda c: c.value if name.startswith("launch.") else -c.value)
    waited = min((c.waited for c in (earlier, later) if c.waited is not None), default=None)
    return best if waited == best.waited else msgspec.structs.replace(best, waited=waited)


def usable_size(
    curve: Sequence[tuple[float, float]],
    above: float,
    up_to: float,
    cap: float | None = None,
    next_level: float | None = None,
) -> tuple[float, float] | None:
    """Find the working set where a cache level is fastest, and the level's usable size [byte].

    curve: (working set [byte], bandwidth [byte/s]), ascending. The level's plateau is the best bandwidth of the
    working sets in (above, up_to]; the first size returned is the one that reached it. The usable size is the largest
    working set that reaches 75 % of the plateau: for larger ones the next level serves too much of the traffic for
    the plateau to be a fair ceiling. A dip on the way does not count, as others' load makes dips but no peaks.
    `cap`: the size that the system reports; a next level of the same speed would hide the edge.
    `next_level`: the bandwidth of the next level, where the same code measured it: if it is lower, the edge is midway
    between the two instead of at 75 %.
    Returns None where no working set lies in the range.
    """
    inside = [(rate, size) for size, rate in curve if above < size <= up_to]
    if not inside:
        return None
    plateau, at = max(inside)
    least = 0.75 * plateau if next_level is None or next_level >= plateau else (next_level + plateau) / 2
    edge = max(size for size, rate in curve if rate >= least)
    return at, edge if cap is None else min(edge, cap)
