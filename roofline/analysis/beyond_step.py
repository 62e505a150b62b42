"""Ops that took longer than the step they ran in: their times are not those of the step.

A little longer they may be, by rounding and where something runs from one step into the next. Far longer, shares of the
step mean nothing, and whoever tells them has to say so first.
"""

from __future__ import annotations

import numpy as np

from roofline.analysis.columns import columns
from roofline.core.schema import Profile

#: A step and its ops are timed by one clock, and both are rounded.
_CLOCK = 1e-3
#: From here on shares of a step are nonsense. By choice: of 202 measured profiles none has more than 1.000001.
_MOST = 1.05
#: Profiled steps that took longer than so many plain ones are other steps. By choice: 1.5 is the most of those.
_OTHER = 2.0


def ops_beyond(profile: Profile) -> int:
    """Count the ops that took longer in a profiled step than that step."""
    profiled = profile.profiled
    if profiled is None or not profiled.walls or not profile.ops:
        return 0
    longest = columns(profile).steps > np.asarray(profiled.walls) * (1 + _CLOCK)
    return int(longest.any(axis=1).sum())


def together_beyond(profile: Profile) -> float | None:
    """Return how many times as long as the profiled steps their ops ran, by their shares; None where not longer."""
    profiled, of = profile.profiled, columns(profile)
    if profiled is None or not profiled.walls or not profile.ops:
        return None
    longer = float((of.own - of.overlap).sum()) / float(np.mean(profiled.walls))
    return longer if longer > 1 + _CLOCK else None


def times_the_step(busy: float, wall: float) -> float | None:
    """Return how many times as long as the plain step its ops took, where that cannot be; None where it can."""
    return busy / wall if busy > _MOST * wall else None


def times_as_slow(scale: float) -> float | None:
    """Return how many times as long as a plain step the profiled ones took, where it is far longer; else None.

    scale: what is left to apply to the times of ops (`core.scale`).
    """
    return 1 / scale if scale * _OTHER < 1 else None
