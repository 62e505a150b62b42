"""Find the share of the plain steps in which programs are traced and compiled, where it is enough to be said."""

from __future__ import annotations

import numpy as np

from roofline.core.executor import COMPILING
from roofline.core.schema import Profile

#: What is less of the plain steps is not said. By choice.
_LEAST = 0.01


def compile_share(profile: Profile) -> float | None:
    """Return the share of the plain steps in which programs are traced and compiled; None: little, or not known."""
    steps = profile.wall.steps
    if COMPILING not in profile.conditions or not steps or profile.wall.source != "plain":
        return None
    share = profile.conditions[COMPILING] / float(np.mean(steps))
    return share if share >= _LEAST else None
