"""How much slower a run's plain steps were than its profiled ones, by what neither an op nor idle time shows."""

from __future__ import annotations

import numpy as np

from roofline.analysis.analysis import Analysis

#: Of the step of a device with a queue, so much may be drift. By choice: within seconds a shared machine gets faster
#: and slower by twice as much.
_MOST_DRIFT = 0.1


def drift(run: Analysis) -> float:
    """The share of a gap that was not idle in the profiled steps.

    A machine is slower in one step than in another, and too much may have been taken off the profiled ones for the
    profiler. Where the plain steps were the slower ones, the gap holds what all of their ops and all of their idle time
    were slower by: whatever the host does between ops, it does in the profiled steps as well. Beside a device with a
    queue a profiler may fill gaps that plain steps have, so that only so much is drift as is little, or as was taken
    off.
    """
    profiled = run.profile.profiled
    if profiled is None or not profiled.idle or run.gap <= 0:
        return 0.0
    more = run.gap - run.scale * float(np.mean(profiled.idle))
    taken_off = float(np.mean(profiled.walls)) - float(np.mean(profiled.corrected))
    most = max(_MOST_DRIFT * run.wall, taken_off) if run.has_queue else run.wall
    return more / run.gap if 0 < more <= most and more < run.wall else 0.0
