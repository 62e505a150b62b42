"""Name the causes of idle time that were observed in the profiled steps, and find the longest wait before one op."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from roofline.core.rows import per_profile, rows
from roofline.core.schema import Profile

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


def seconds_of(cause: str, causes: Mapping[str, float] | None) -> float:
    """Sum the causes that begin with `cause` of a gap [s]; 0 where none are known."""
    return sum(seconds for name, seconds in (causes or {}).items() if name.startswith(cause))


def hole(profile: Profile, idle: float | None) -> tuple[int, float] | None:
    """Return the op before which the device idled for most of `idle` [s], in one piece, and its share of that.

    None where no single wait is that long, or it is not recorded what each op waited for. Before an op of several
    launches it is not known how long each of them waited.
    """
    longest = most_before_one(profile, idle)
    return longest if longest and rows(profile).launches[longest[0]] <= 1 else None


def most_before_one(profile: Profile, idle: float | None) -> tuple[int, float] | None:
    """Return such an op and share, be it in one piece or before each launch of an op."""
    if not idle or not profile.ops:
        return None
    row, longest = _longest_wait(profile)
    share = longest / max(idle, longest)
    return (row, share) if share >= _HOLE else None


@per_profile
def _longest_wait(profile: Profile) -> tuple[int, float]:
    """Return the op of those that run once a step before whose launches no op ran for longest, and that time [s]."""
    of = rows(profile)
    waits = np.where(of.times == 1, of.waited, 0)
    row = int(waits.argmax())
    return row, int(waits[row]) * 1e-9
