"""List the idle time whose cause a trace names: what the device waited for, and functions that the host was in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from roofline.core.arrays import Array
from roofline.core.rows import per_profile, settled
from roofline.core.schema import Profile
from roofline.core.vocabulary import DEVICE_WAITS


class Wait(NamedTuple):
    """Idle time before an op, mean of the kept steps [s]. of: a stream, an event, a copy or a function, "" for none."""

    op: int
    cause: str
    of: str
    seconds: float

    @property
    def is_of_device(self) -> bool:
        """Return whether the host had done its part."""
        return self.cause in DEVICE_WAITS


@per_profile
def waits(profile: Profile) -> tuple[Wait, ...]:
    """List all of a profile, the longest first."""
    table = profile.waits
    if table is None:
        return ()
    listed = [
        Wait(op, table.causes[cause], table.names[of] if of >= 0 else "", ns * 1e-9)
        for op, cause, of, ns in zip(table.op, table.cause, table.of, table.ns, strict=True)
    ]
    return tuple(sorted(listed, key=lambda wait: -wait.seconds))


@per_profile
def waits_before(profile: Profile) -> Mapping[int, tuple[Wait, ...]]:
    """Return those before each op that has any, by its row."""
    before: dict[int, tuple[Wait, ...]] = {}
    for wait in waits(profile):
        before[wait.op] = (*before.get(wait.op, ()), wait)
    return before


@per_profile
def device_waits(profile: Profile) -> Array:
    """Sum what the device waited for before each op [s], shape (ops,)."""
    seconds = np.zeros(len(profile.ops))
    for wait in waits(profile):
        if wait.is_of_device:
            seconds[wait.op] += wait.seconds
    return settled(seconds)


@per_profile
def longest_named(profile: Profile, *, of_device: bool) -> Wait | None:
    """Sum the waits of the device, or of the host, by what they were for, and return the longest sum.

    Its op is the one that waited longest for that. None where nothing is named.
    """
    sums: dict[tuple[str, str], Wait] = {}
    for wait in waits(profile):
        if wait.is_of_device is of_device and wait.of:
            key = (wait.cause if of_device else "", wait.of)
            longest = sums.setdefault(key, wait._replace(seconds=0.0))
            sums[key] = longest._replace(seconds=longest.seconds + wait.seconds)
    return max(sums.values(), key=lambda wait: wait.seconds, default=None)
