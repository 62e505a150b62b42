"""Bytes that hardware counters saw of a step's ops, where they were counted (docs/counters.md)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.rows import per_profile, settled
from roofline.core.schema import Counters, Profile


class Counted(NamedTuple):
    """Per op, NaN where it was not counted: bytes from and to main memory, and through the last-level cache."""

    read: Array
    written: Array
    through_cache: Array

    @property
    def known(self) -> NDArray[np.bool_]:
        """Return which ops were counted."""
        return ~np.isnan(self.read)


@per_profile
def counted(profile: Profile) -> Counted:
    """Return the counters of a profile as columns; without counters nothing is known of any op."""
    counters, nothing = profile.counters, np.full(len(profile.ops), np.nan)
    if counters is None:
        return Counted(*(settled(nothing) for _ in Counted._fields))
    columns = (counters.read, counters.written, counters.through_cache)
    return Counted(*(settled(np.asarray(column, np.float64) if column else nothing) for column in columns))


def counters_on(profile: Profile, device: Device) -> Counters | None:
    """Return the counters under the ceilings of a device: counts next to one cache say nothing of another's."""
    return profile.counters if (device.name, device.kind) == (profile.device.name, profile.device.kind) else None


def counted_on(profile: Profile, device: Device) -> Counted:
    """Return the counters under the ceilings of a device as columns."""
    if counters_on(profile, device) is profile.counters:
        return counted(profile)
    return Counted(*np.full((len(Counted._fields), len(profile.ops)), np.nan))
