"""Ops that a loader of batches runs inside of the step: they are input, as the time is that the step waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.arrays import Bools
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Rule
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.select import alone_or_in_place
from roofline.comparison.segments import Segments
from roofline.core.scopes import LOADER


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those that the other run lacks: drawing an order, collecting samples, stacking them."""
    for a, b in alone_or_in_place(attribution, _loads):
        some, other = attribution.a.segments, attribution.b.segments
        more = attribution.a.seconds[a].sum() - attribution.b.seconds[b].sum()
        if (_loads(some)[a] if more > 0 else _loads(other)[b]).any():
            yield Claim("data-input", a, b, host=True)
        else:  # what takes longer is no loader's
            yield Claim("data-input", a[_loads(some)[a]], b[_loads(other)[b]], host=True)


def _loads(some: Segments) -> Bools:
    """Which segments a loader runs."""
    return np.asarray([place.block == LOADER for place in some.places], bool)


RULE = Rule(name="loading", claim=claim, before=("synchronisation",))
