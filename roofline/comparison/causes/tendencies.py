"""What two runs show and do not resolve: told as a tendency, and not as a finding."""

from __future__ import annotations

import numpy as np

from roofline.analysis.bootstrap import Interval, interval
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import Entry
from roofline.comparison.terms import Comparison
from roofline.core.schema import slug

#: The flag of runs that other programs disturbed while they were measured.
_CONTENDED = "contended"
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


def surely_of_one_run(attribution: Attribution, entry: Entry) -> float:
    """What ops that the other run lacks surely take, where they are most of an entry: A - B [s]; else 0.

    How long such ops take is told by the run that has them: however far apart the walls of both runs may be, the other
    one spends nothing on them. What makes a process slower multiplies their times, so that under the flag `contended`
    the lower end of their interval is taken to be as many times lower again.
    """
    alone, pairs = entry.alone, attribution.matching
    if bool(len(alone.a)) == bool(len(alone.b)):
        return 0.0
    first = bool(len(alone.a))
    side, rows, parts = (attribution.a, alone.a, alone.parts_a) if first else (attribution.b, alone.b, alone.parts_b)
    if np.isin(rows, pairs.pairs_a if first else pairs.pairs_b).any():
        return 0.0
    own, ci95 = float((side.seconds[rows] * parts).sum()), interval(side.drawn(rows, parts), side.resamples)
    sign = 1 if first else -1
    seconds = attribution.seconds(entry) * sign
    if ci95 is None or seconds <= 0 or own < _MOST * seconds:
        return 0.0
    times = min(1.0, max(0.0, ci95[0]) / own)
    return sign * own * times * (times if _CONTENDED in map(slug, side.analysis.flags) else 1.0)
