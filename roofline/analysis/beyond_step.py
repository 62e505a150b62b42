"""Ops that took longer than the step they ran in: their times are not those of the step."""

from __future__ import annotations

import numpy as np

from roofline.analysis.columns import columns
from roofline.core.schema import Profile

#: A step and its ops are timed by one clock, and both are rounded.
_CLOCK = 1e-3


def ops_beyond(profile: Profile) -> int:
    """How many ops took longer in a profiled step than that step."""
    profiled = profile.profiled
    if profiled is None or not profiled.walls or not profile.ops:
        return 0
    longest = columns(profile).steps > np.asarray(profiled.walls) * (1 + _CLOCK)
    return int(longest.any(axis=1).sum())


def together_beyond(profile: Profile) -> float | None:
    """How many times as long as the profiled steps the ops of one ran, each by its share; None where not longer."""
    profiled, of = profile.profiled, columns(profile)
    if profiled is None or not profiled.walls or not profile.ops:
        return None
    longer = float((of.own - of.overlap).sum()) / float(np.mean(profiled.walls))
    return longer if longer > 1 + _CLOCK else None
