"""Set a step against the ceilings of two devices: what its ops take at best here and there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.rows import buffers_known
from roofline.projection.devices import (
    Change,
    borrow_launches,
    drop_optional,
    find_change,
    is_sheet,
    make_comparable,
)
from roofline.projection.reasons import CARRIED, NO_CEILING, Words, find_reasons
from roofline.projection.roofs import Roofs, roofs
from roofline.projection.startup import startup_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Hold the two devices with comparable ceilings, the roofs of a step's ops on both, and their start-ups [s].

    source, target: with the caches that count; caches: whether any do. change: from one to the other. left_out:
    ceilings that only one of them has; borrowed: launch floors of the source that the target lacks. starts: shape
    (ops,) each. why: why an op is not projected by its work, CARRIED where it is.
    """

    source: Device
    target: Device
    caches: bool
    change: Change | None
    left_out: tuple[str, ...]
    borrowed: tuple[str, ...]
    here: Roofs
    there: Roofs
    starts: tuple[Array, Array]
    why: Words

    @property
    def before(self) -> Array:
        """The time of each op's work and start-up at the ceilings here [s]; shape (ops,)."""
        return self.here.work + self.starts[0]

    @property
    def after(self) -> Array:
        """The time of each op's work and start-up at the ceilings there [s]; shape (ops,)."""
        return self.there.work + self.starts[1]

    @property
    def by_work(self) -> NDArray[np.bool_]:
        """Whether each op is projected by its work; shape (ops,)."""
        carried: NDArray[np.bool_] = self.why == CARRIED
        return carried


def find_sides(analysis: Analysis, target: Device, sheet: Device | None = None) -> Sides:
    """Set the step of an analysis against the ceilings of its own device and of the target.

    sheet: the datasheet of the analysis' device, if there is one.
    """
    profile, columns = analysis.profile, analysis.table.columns
    # Both devices with the same kinds of ceilings: only their values differ then.
    source, held, left_out = drop_optional(*make_comparable(analysis.device, target, sheet))
    held, borrowed = borrow_launches(held, source, profile)
    change = find_change(source, held, sheet)
    caches = buffers_known(profile) and all(_cache_is_measured(device) for device in (source, held))
    if not caches:
        source, held = source.without_caches, held.without_caches
    here, there = roofs(profile, source), roofs(profile, held)
    starts = startup_times(profile, columns, source, held)
    why = find_reasons(profile, columns, source, held, here.work, there.work)
    empty = (here.work + starts[0] <= 0) | (there.work + starts[1] <= 0)
    why = np.where((why == CARRIED) & empty, NO_CEILING, why)
    return Sides(
        source=source,
        target=held,
        caches=caches,
        change=change,
        left_out=left_out,
        borrowed=borrowed,
        here=here,
        there=there,
        starts=starts,
        why=why,
    )


def _cache_is_measured(device: Device) -> bool:
    """Tell whether the last-level cache's size and bandwidth are known by a calibration, as its main memory's is."""
    return device.serves is not None and not is_sheet(device.ceilings[f"cache.{device.caches[-1].level}"])
