"""Compute the least time of a step that was counted and not run, from the ceilings of a device."""

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
from roofline.memory.fit import Fit, fit
from roofline.repr_mixin import ReprMixin


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Least(ReprMixin):
    """Hold the least time of counted work on a device.

    step: the work under the ceilings of the device. groups: sums by group; floors: the least time of each group [s].
    bounds: the sum of floors, split by the roof that sets each [s]. unknown_ops: number of ops of unknown work or
    ceiling. unpriced: ceilings of products that the device lacks, without which no least time is known. fit: how the
    step fits into the device's memory.
    """

    step: WorkAnalysis
    device: Device
    groups: Mapping[str, WorkTotal]
    floors: Mapping[str, float]
    bounds: Mapping[str, float]
    unknown_ops: int
    unpriced: tuple[str, ...]
    fit: Fit

    @property
    def floor(self) -> float | None:
        """The least time of the step [s]; None where the device has no ceiling for its products."""
        return None if self.unpriced else sum(self.floors.values())


def least(profile: Profile, device: Device) -> Least:
    """Compute the least time on a device. Raises InputError where it has no ceiling for any op."""
    step = analyze(profile, device)
    floor, bound = step.table.floor, step.table.bound
    if not floor.sum():
        raise InputError(f"{device.name} has no ceiling for any op of the profile: give a device with more of them.")
    floors = dict.fromkeys(step.by("group"), 0.0)
    for group, seconds in zip(step.labels("group"), floor.tolist(), strict=True):
        floors[group] += seconds
    by_bound = np.bincount(bound, floor, len(BOUNDS))
    return Least(
        step=step,
        device=device,
        groups=step.by("group"),
        floors=floors,
        bounds={name: float(by_bound[number]) for number, name in enumerate(BOUNDS) if by_bound[number]},
        unknown_ops=int((floor == 0).sum()),
        unpriced=tuple(name for name in step.missing if name.startswith("matrix.")),
        fit=fit(profile, device),
    )
