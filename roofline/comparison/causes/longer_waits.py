"""How much longer the device waits before the same ops in one run than in the other."""

from __future__ import annotations

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.core.rows import rows


def longer_waits(attribution: Attribution) -> tuple[float, float] | None:
    """Times in which no op runs before the ops of A, beyond those before the same ops of B, and the reverse [s].

    None where one of the runs has no such times. What a device takes by itself, and waits for others, is in none.
    """
    waits = [rows(side.analysis.profile).waited * 1e-9 for side in (attribution.a, attribution.b)]
    if not all(wait.any() for wait in waits):
        return None
    pairs = attribution.matching
    a, b = attribution.a.segments.op[pairs.pairs_a], attribution.b.segments.op[pairs.pairs_b]
    there = [np.zeros(len(wait)) for wait in waits]
    there[0][a], there[1][b] = waits[1][b], waits[0][a]
    one, other = (float(np.maximum(mine - theirs, 0).sum()) for mine, theirs in zip(waits, there, strict=True))
    return one, other
