"""The uniform scale that is left between profiled steps, corrected for their profiler, and plain ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.core.schema import Profile, Profiled


def scale_of(profile: Profile) -> tuple[float, float | None]:
    """Return (uniform scale left to apply, inflation of the profiled step before any correction)."""
    if profile.profiled is None or not profile.profiled.corrected:
        return 1.0, None
    wall = float(np.median(profile.wall.steps))
    mean = float(taken(profile, profile.profiled).mean())
    return min(1.0, wall / mean) if mean > 0 else 1.0, float(np.mean(profile.profiled.walls)) / wall


def taken(profile: Profile, profiled: Profiled) -> NDArray[np.float64]:
    """Return the time of each profiled step that is held against a plain one [s].

    Beside a GPU the profiler slows the host down, which is idle time of the device and not the kernels' time.
    """
    corrected = np.asarray(profiled.corrected, np.float64)
    if profile.device.kind != "cpu" and profiled.idle:
        return np.subtract(corrected, np.asarray(profiled.idle, np.float64))
    return corrected
