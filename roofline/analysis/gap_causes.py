"""Why no op ran: the causes of idle time that were observed in the profiled steps, carried over to the gap.

Beside a device with a queue of its own the profiler slows the host, which records each op that it dispatches, and no
kernel. What the device idled more than in plain steps is taken off dispatching; where that is not enough, off the other
causes alike, each of which ends with the dispatch of an op.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roofline.core.rows import per_profile, rows
from roofline.core.schema import Profile

#: Causes are carried over where observed idle and the gap agree within this share of either, or of wall.
AGREE_OF_GAP, AGREE_OF_WALL = 0.20, 0.02
#: What causes of idle time begin with that are the host's dispatching, and that are its waiting for input.
DISPATCH, INPUT = "host dispatch", "data input"
#: What is the device's own: what it takes between queued kernels, and waits for without any trace of it.
OTHER = "other"
#: Where the profiled steps say that the host waited for the device.
SYNCHRONISATION = "synchronisation"
#: Where compiling, or going over guards, kept the host; and where it waited for a collective.
COMPILATION, COMMUNICATION = "graph break/compilation", "communication wait"
#: A wait before one op that is this share of the idle time is a hole in the step, no matter of each launch. By choice.
_HOLE = 0.5
#: Of its dispatching, what is outside of the framework; and how what is in compiled code begins, kernels included.
PYTHON, COMPILED = f"{DISPATCH}: Python", f"{DISPATCH}: compiled"


def gap_causes(
    observed: Mapping[str, float], idle: float, gap: float, wall: float, queued: bool
) -> dict[str, float] | None:
    """The gap by cause; all in [s]. None where gap and observed idle do not agree.

    observed: idle times of the profiled steps by cause, `idle` in all. queued: whether the device has a queue.
    """
    whole = sum(observed.values())
    if queued and idle > gap >= 0 and whole > 0:
        observed = _without_profiler(observed, max(0.0, whole - gap))
        whole = sum(observed.values())
    elif abs(gap - idle) > max(AGREE_OF_GAP * max(gap, idle), AGREE_OF_WALL * wall):
        return None
    return {cause: gap * seconds / whole for cause, seconds in observed.items()} if whole > 0 else {}


def seconds_of(cause: str, causes: Mapping[str, float] | None) -> float:
    """What the causes that begin with `cause` have of a gap [s]; 0 where none are known."""
    return sum(seconds for name, seconds in (causes or {}).items() if name.startswith(cause))


def hole(profile: Profile, idle: float | None) -> tuple[int, float] | None:
    """The op before which the device idled for most of `idle` [s], in one piece, and which share of it that is.

    None where no single wait is that long, or it is not recorded what each op waited for. Before an op of several
    launches it is not known how long each of them waited.
    """
    found = most_before_one(profile, idle)
    return found if found and rows(profile).launches[found[0]] <= 1 else None


def most_before_one(profile: Profile, idle: float | None) -> tuple[int, float] | None:
    """The same, be it in one piece or before each launch of an op."""
    if not idle or not profile.ops:
        return None
    row, longest = _longest_wait(profile)
    share = longest / max(idle, longest)
    return (row, share) if share >= _HOLE else None


@per_profile
def _longest_wait(profile: Profile) -> tuple[int, float]:
    """The op before whose launches no op ran for the longest time, of those that run once a step, and that time [s]."""
    of = rows(profile)
    waits = np.where(of.times == 1, of.waited, 0)
    row = int(waits.argmax())
    return row, int(waits[row]) * 1e-9


def _without_profiler(observed: Mapping[str, float], excess: float) -> dict[str, float]:
    """Idle times by cause without what the profiler added to them, `excess` in all [s]."""
    dispatch = {cause: seconds for cause, seconds in observed.items() if cause.startswith(DISPATCH)}
    others = {cause: seconds for cause, seconds in observed.items() if cause not in dispatch}
    taken = min(excess, sum(dispatch.values()))
    return {**_less(dispatch, taken), **_less(others, excess - taken)}


def _less(times: Mapping[str, float], taken: float) -> dict[str, float]:
    whole = sum(times.values())
    left = max(0.0, 1 - taken / whole) if whole else 1.0
    return {cause: seconds * left for cause, seconds in times.items()}
