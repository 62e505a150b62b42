"""The least time of a step that was only counted, by the ceilings of a device: nothing was measured anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofline.analysis.analysis import WorkAnalysis, analyze
from roofline.analysis.totals import WorkTotal
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.vocabulary import BOUNDS
from roofline.errors import InputError
from roofline.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Least(Shown):
    """What a device needs at least for counted work.

    step: the work under the ceilings of the device. groups: its sums; floors: the least time of each [s]. bounds: the
    parts of the sum of floors by the roof that sets each [s]. unknown: ops whose work, or whose ceiling, is not known.
    """

    step: WorkAnalysis
    there: Device
    groups: Mapping[str, WorkTotal]
    floors: Mapping[str, float]
    bounds: Mapping[str, float]
    unknown: int

    @property
    def floor(self) -> float:
        """The least time of the step [s]."""
        return sum(self.floors.values())


def least(profile: Profile, there: Device) -> Least:
    """The least time on `there`. Raises InputError where none of its ceilings says anything of the work."""
    step = analyze(profile, there)
    floor, bound = step.table.floor, step.table.bound
    if not floor.sum():
        raise InputError(f"{there.name} has no ceiling for any op of the profile: give a device with more of them.")
    floors = dict.fromkeys(step.by("group"), 0.0)
    for group, seconds in zip(step.labels("group"), floor.tolist(), strict=True):
        floors[group] += seconds
    by_bound = np.bincount(bound, floor, len(BOUNDS))
    return Least(
        step=step,
        there=there,
        groups=step.by("group"),
        floors=floors,
        bounds={name: float(by_bound[number]) for number, name in enumerate(BOUNDS) if by_bound[number]},
        unknown=int((floor == 0).sum()),
    )
