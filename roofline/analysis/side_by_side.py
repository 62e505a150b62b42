"""Sum what ops under one roof attain together, where they ran at once: two that share a memory each get a part of it.

    attained by each = sum of floors / sum of own times,   together = sum of floors / time in which any of them ran

Who ran beside whom is read off the representative step, in which an op is taken to run from its start on, without a
break; its ratio of the two times holds for all steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.core.rows import Ints, rows
from roofline.core.vocabulary import BOUNDS, Bound

#: From this ratio of both times on ops ran at once. By choice: ends that touch by a tick of the clock are below it.
_AT_ONCE = 1.05


def at_once(analysis: Analysis, bound: Bound, among: NDArray[np.bool_] | None = None) -> float:
    """Return the own times of ops under a roof / the time in which any of them ran; 1.0 where it cannot be seen.

    among: the ops that count, one flag per op; all where it is None.
    """
    of, table = rows(analysis.profile), analysis.table
    under = (table.bound == BOUNDS.index(bound)) & (table.uncosted == 0)
    if among is not None:
        under &= among
    if not (of.overlap[under] > 0).any():
        return 1.0
    own_times = of.own.reshape(len(under), -1)[under, 0]
    together = _covered(of.start[under], own_times)
    times = float(own_times.sum()) / together if together > 0 else 1.0
    return times if times >= _AT_ONCE else 1.0


def _covered(start: Ints, own_times: Ints) -> int:
    """Return the time in which at least one of some ops, one or more, ran [ns]."""
    order = np.argsort(start, kind="stable")
    begin = start[order]
    reach = np.maximum.accumulate(begin + own_times[order])
    before = np.concatenate((begin[:1], reach[:-1]))
    return int((reach - np.maximum(begin, before)).sum())
