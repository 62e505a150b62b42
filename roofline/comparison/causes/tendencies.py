"""What two runs show and do not resolve: told as a tendency, and not as a finding."""

from __future__ import annotations

import numpy as np

from roofline.analysis.bootstrap import Interval, interval
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import Entry
from roofline.comparison.terms import Comparison
from roofline.core.executor import QUEUED
from roofline.core.schema import slug

#: The flag of runs that other programs disturbed while they were measured.
_CONTENDED = "contended"
#: Flags of runs whose times are not to be trusted as far as their intervals say.
DOUBTS = frozenset((_CONTENDED, "inflated", "throttled"))
#: How many times as far as in its own steps a disturbed run may be off. By choice: whether others ran during one
#: measurement and not the other shows in neither run's steps.
_WIDER = 2.0
#: This part of a finding is most of it. By choice.
_MOST = 0.5


def is_tendency(comparison: Comparison, seconds: float, ci95: Interval) -> bool:
    """Whether a part of a difference [s], with its 95 % interval, is too little to be found in these runs.

    Where the interval of the whole difference holds 0, what is no more than half of that interval: a step slower by so
    much would not be told from one that is not. And under the flag `contended`, what an interval twice as wide does not
    tell from 0.
    """
    whole = comparison.ci95
    if whole is not None and not comparison.resolved and 2 * abs(seconds) <= whole[1] - whole[0]:
        return True
    flags = {slug(flag) for run in (comparison.a, comparison.b) for flag in run.flags}
    low, high = (seconds + _WIDER * (end - seconds) for end in ci95)
    return _CONTENDED in flags and low <= 0 <= high


def without_waiting(attribution: Attribution, entry: Entry) -> float:
    """What is left of an entry if its hosts' time is what they waited for a core that others had: A - B [s].

    How much of that waiting was while no op ran is not known: as much as there is of such time in the entry.
    """
    seconds, gap = attribution.seconds(entry), attribution.gap_seconds(entry)
    a, b = (run.profile.conditions.get(QUEUED) for run in (attribution.comparison.a, attribution.comparison.b))
    if a is None or b is None or (a - b) * gap <= 0:
        return seconds
    return seconds - (min(a - b, gap) if gap > 0 else max(a - b, gap))


def surely_other_work(attribution: Attribution, entry: Entry) -> float:
    """What ops that the other run lacks surely take more than what it has in their place: A - B [s].

    0 where they are not most of an entry, or where it is about ops that both runs have. How long an op takes is told by
    the run that has it, however far apart the walls of both runs may be: the lower end of the interval of what takes
    more, less the upper end of what takes less, which is often nothing. What makes a process slower multiplies times,
    so that of a run that is flagged for it both ends are taken to be as many times farther off again.
    """
    alone, pairs = entry.alone, attribution.matching
    ends, own = [], []
    for side, rows, parts, paired in (
        (attribution.a, alone.a, alone.parts_a, pairs.pairs_a),
        (attribution.b, alone.b, alone.parts_b, pairs.pairs_b),
    ):
        ci95 = interval(side.drawn(rows, parts), side.resamples)
        if ci95 is None or np.isin(rows, paired).any():
            return 0.0
        own.append(float((side.seconds[rows] * parts).sum()))
        ends.append(_widened(own[-1], ci95, bool(DOUBTS & set(map(slug, side.analysis.flags)))))
    seconds, more = attribution.seconds(entry), own[0] - own[1]
    if not more or abs(more) < _MOST * abs(seconds) or more * seconds <= 0:
        return 0.0
    return max(0.0, ends[0][0] - ends[1][1]) if more > 0 else min(0.0, ends[0][1] - ends[1][0])


def _widened(own: float, ci95: Interval, disturbed: bool) -> Interval:
    """The ends of the interval of a time [s], which contain it; squared as multiples of it in a disturbed run."""
    if own <= 0:
        return 0.0, max(0.0, ci95[1])
    low, high = min(1.0, max(0.0, ci95[0] / own)), max(1.0, ci95[1] / own)
    return (own * low * low, own * high * high) if disturbed else (own * low, own * high)
