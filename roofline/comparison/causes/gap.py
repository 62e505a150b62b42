"""What shares of a run's gap are known to be: the host's dispatching, another cause, or drift of the machine."""

from __future__ import annotations

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import DISPATCH, seconds_of

#: Of the step, so much may be drift. By choice: within seconds a shared machine gets faster and slower by twice as
#: much.
_MOST_DRIFT = 0.1


def dispatching(run: Analysis) -> float:
    """The share of a gap that is the host's dispatching: all of it, but for what is known to have another cause."""
    return max(0.0, share_of_gap(run, DISPATCH)) if run.gap_causes and run.gap else 1.0


def drift(run: Analysis) -> float:
    """The share of a gap that was not idle in the profiled steps, where it is little enough to be drift.

    A machine is a few percent slower in one step than in another, and too much may have been taken off the profiled
    ones for the profiler. Where the plain steps were the slower ones, the gap holds what all of their ops and all of
    their idle time were slower by; more than `_MOST_DRIFT` and more than was taken off is something else.
    """
    profiled = run.profile.profiled
    if profiled is None or not profiled.idle or run.gap <= 0:
        return 0.0
    more = run.gap - run.scale * float(np.mean(profiled.idle))
    taken_off = float(np.mean(profiled.walls)) - float(np.mean(profiled.corrected))
    return more / run.gap if 0 < more <= max(_MOST_DRIFT * run.wall, taken_off) and more < run.wall else 0.0


def share_of_gap(run: Analysis, cause: str) -> float:
    """The share of a gap that the causes which begin with `cause` have; 0 where causes are not known."""
    return seconds_of(cause, run.gap_causes) / run.gap if run.gap else 0.0
