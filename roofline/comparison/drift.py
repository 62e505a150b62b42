"""How much slower a run's plain steps were than its profiled ones, by what neither an op nor idle time shows."""

from __future__ import annotations

import numpy as np

from roofline.analysis.analysis import Analysis

#: Of a step, so much may be drift of the machine. By choice: within seconds a shared one gets faster and slower by
#: twice as much. What is more is told as a doubt about the measurement.
MOST = 0.1


def drift(run: Analysis) -> float:
    """The share of a gap that was not idle in the profiled steps.

    A machine is slower in one step than in another, and too much may have been taken off the profiled ones for the
    profiler. Where the plain steps were the slower ones, the gap holds what all of their ops and all of their idle time
    were slower by: whatever the host does between ops, it does in the profiled steps as well. Beside a device with a
    queue a profiler may fill gaps that plain steps have, so that more than `spread` gives out is something else there.
    """
    profiled = run.profile.profiled
    if profiled is None or not profiled.idle or run.gap <= 0:
        return 0.0
    more = run.gap - run.scale * float(np.mean(profiled.idle))
    most = _most(run) if run.has_queue else run.wall
    return more / run.gap if 0 < more <= most and more < run.wall else 0.0


def spread(run: Analysis) -> float:
    """The share of a gap by which all that a step does was slower: of drift no more than is little, or was taken off.

    On what the rest of it was spent nobody knows.
    """
    found = drift(run)
    return min(found, _most(run) / run.gap) if found else 0.0


def _most(run: Analysis) -> float:
    """What the machine, or what was taken off the profiled steps, may have added to the plain ones [s]."""
    profiled = run.profile.profiled
    taken_off = 0.0 if profiled is None else float(np.mean(profiled.walls)) - float(np.mean(profiled.corrected))
    return max(MOST * run.wall, taken_off)
