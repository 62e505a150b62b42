"""What two runs show and do not resolve: told as a tendency, and not as a finding."""

from __future__ import annotations

from roofline.analysis.bootstrap import Interval
from roofline.comparison.terms import Comparison
from roofline.core.schema import slug

#: The flag of runs that other programs disturbed while they were measured.
_CONTENDED = "contended"
#: How many times as far as in its own steps a disturbed run may be off. By choice: whether others ran during one
#: measurement and not the other shows in neither run's steps.
_WIDER = 2.0


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
