"""Project a step to another device by the fraction of the ceilings that each op reaches here.

The source is the device of the profile ("here"), the target the other one ("there"). The model: an op takes the time
of its work at the ceilings plus a start-up time, both divided by an efficiency e: own = (work + startup) / e. So

    time there = own * (work there + startup there) / (work here + startup here) * e here / e there

work is the longer of the compute and the memory term; startup comes from startup.py, and no ceiling shortens it: large
kernels follow the roofs, small ones the latency. sides.py sets the step against the ceilings of both devices, which
devices.py makes comparable. kernels.py says what other kernels reach there; interval.py widens the range for what is
not known of them, and never lets it begin below the ceilings. The efficiency is that of the op's own time; overlap.py
then subtracts the time shared with other ops.

An op cannot be projected without a ceiling for its work: matrix products and collectives without theirs are left out
and named. The time of an op of unknown work changes like that of the other ops of its group, if those are at least
half of the group's time; the result names these ops. The gap belongs to the host and stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import draw
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.vocabulary import GROUP_OF, GROUPS, Group
from roofline.errors import InputError
from roofline.memory.fit import Fit, fit
from roofline.projection.devices import Change
from roofline.projection.interval import Interval, draw_times, interval_around, sheet_mismatches
from roofline.projection.kernels import FITTED, Fitted, draw_kernels, kernel_range, other_kernels
from roofline.projection.overlap import share_times
from roofline.projection.reasons import CARRIED, PRECISION_NOT_KNOWN, WORK_NOT_KNOWN, Words
from roofline.projection.roofs import cache_served, divide, roofs
from roofline.projection.sides import find_sides
from roofline.repr_mixin import ReprMixin

#: Least known share of a group's time for which the known ops stand for the unknown ones. By choice, as in
#: comparability.
_MOSTLY_KNOWN = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """Sum some ops of the step on both devices. Times are share times [s].

    measured, projected: time here and there of the projected ops; interval: of `projected`; floor: their least time
    there by the ceilings alone, less the part that ops under another roof hide. assumed: the part of `measured` whose
    work is unknown, projected like the rest of its group. not_carried: time here of the ops that were not projected,
    while no projected op ran.
    """

    ops: int
    measured: float
    projected: float
    interval: Interval
    floor: float
    assumed: float
    not_carried: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Name ops that their work does not project: the reason, their number, and their time here [s].

    longest: the name of the op that takes longest. assumed: projected like the rest of their group. hidden: their own
    time here while other ops ran [s].
    """

    reason: str
    ops: int
    seconds: float
    longest: str
    assumed: bool
    hidden: float


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf(ReprMixin):
    """Hold a step of the analysis `here` as projected to the device `there`. Times in seconds.

    groups: the groups that have ops; total: all ops. gap: unchanged from here; interval: of `seconds`. starting: the
    part of the projected ops' time here that is the device's start-up, not work. hidden: own time here of projected
    ops that other projected ops share. cached: time here of ops whose range goes below main memory's roof there.
    rebound: time here of projected ops that another roof binds there. change: of device. kernels: factor by which
    other kernels may make the projected ops faster or slower. missing: ceilings of floors that `there` lacks. left_out:
    ceilings that one device lacks, left out for both; kept: launch floors of `here` that stand for missing ones. sheet:
    true where a measured ceiling is compared with a datasheet's. caches: true where the caches of both count, and not
    main memory alone.
    """

    here: Analysis
    there: Device
    groups: Mapping[Group, Row]
    total: Row
    gap: float
    interval: Interval
    unknown: tuple[Unknown, ...]
    starting: float
    hidden: float
    cached: float
    rebound: float
    change: Change | None
    kernels: float
    missing: tuple[str, ...]
    left_out: tuple[str, ...]
    kept: tuple[str, ...]
    sheet: bool
    caches: bool

    @property
    def fit(self) -> Fit:
        """Return how the step fits into the memory there."""
        return fit(self.here.profile, self.there)

    @property
    def seconds(self) -> float:
        """The step there, without the ops that were not projected [s]."""
        return self.total.projected + self.gap

    @property
    def compared(self) -> float:
        """The step here, without the ops that were not projected: the counterpart of `seconds` [s]."""
        return self.here.wall - self.total.not_carried

    @property
    def speedup(self) -> float | None:
        """Divide `compared` by `seconds`: the factor by which the step is faster there; None where either is 0."""
        return self.compared / self.seconds if self.seconds > 0 and self.compared > 0 else None


def project(analysis: Analysis, target: Device, sheet: Device | None = None, fitted: Fitted = FITTED) -> WhatIf:
    """Project the step of an analysis to the device `target`.

    sheet: the datasheet of the analysis' device, if there is one; its reached or printed figures are compared with
    those of the target. fitted: what is known of other kernels.

    Raises InputError where there is no time to project, or no ceiling to project any of it by.
    """
    profile = analysis.profile
    _check(analysis, target)
    sides = find_sides(analysis, target, sheet)
    columns, why, by_work = analysis.table.columns, sides.why, sides.by_work
    target_roofs, least_here = (
        roofs(profile, device if sides.caches else device.without_caches) for device in (target, analysis.device)
    )
    kernels = other_kernels(analysis, sides, fitted)
    group = _groups(analysis)
    floor = np.where(by_work, target_roofs.work, 0.0)
    alike = divide(sides.after, sides.before, by_work) * kernels.factor
    ratio = _raise_to_floor(alike, analysis, least_here.work, floor)
    # A cache that may have served an op here may serve it there: the range goes below main memory's roof, `ratio` not.
    (kept_here, _), (kept_there, cached) = cache_served(profile, analysis.device), cache_served(profile, target)
    cacheable = by_work & kept_here & kept_there
    lowest = np.where(cacheable, cached, floor)
    fastest = np.where(cacheable, _raise_to_floor(alike, analysis, least_here.work, lowest), ratio)
    assumed = _ratio_of_group(
        group, analysis.table.share, ratio, by_work, (why == WORK_NOT_KNOWN) | (why == PRECISION_NOT_KNOWN)
    )
    carried = by_work | (assumed > 0)
    if not carried.any():
        names = sorted(set(why.tolist())) or ["it has no ops"]
        raise InputError(f"No op of the profile can be projected to another device: {', '.join(names)}.")
    ratio, fastest = (np.where(by_work, factor, assumed) for factor in (ratio, fastest))
    shares = share_times(profile, columns.own, columns.overlap, carried, ratio, target_roofs.binding)
    share, projected = shares.seconds_here * analysis.scale, shares.seconds_there * analysis.scale
    floor, lowest = floor * (1 - shares.other_roof), lowest * (1 - shares.other_roof)
    resamples = draw(analysis)
    kernel_draws = draw_kernels(kernels, len(resamples.scale))
    times, sooner = (
        draw_times(analysis, resamples, group, carried, factor, shares.hidden, sides, kernels, kernel_draws)
        for factor in (ratio, fastest)
    )

    def row(rows: NDArray[np.bool_], number: int | None) -> Row:
        chosen = rows & carried
        seconds = float(projected[chosen].sum())
        upper, lower = (draws.sum(axis=0) if number is None else draws[number] for draws in (times, sooner))
        return Row(
            ops=int(rows.sum()),
            measured=float(share[chosen].sum()),
            projected=seconds,
            interval=_raise_start(float(lowest[rows].sum()), seconds, interval_around(seconds, lower, upper)),
            floor=float(floor[rows].sum()),
            assumed=float(share[chosen & ~by_work].sum()),
            not_carried=float(share[rows & ~carried].sum()),
        )

    total = row(np.ones(len(share), bool), None)
    # Plain and profiled steps are drawn separately: in some draws the ops take longer than the step.
    gap = np.maximum(resamples.gap, 0.0)
    step_interval = interval_around(total.projected + analysis.gap, sooner.sum(axis=0) + gap, times.sum(axis=0) + gap)
    return WhatIf(
        here=analysis,
        there=target,
        groups={GROUPS[code]: row(group == code, code) for code in np.unique(group).tolist()},
        total=total,
        gap=analysis.gap,
        interval=_raise_start(float(lowest.sum()) + analysis.gap, total.projected + analysis.gap, step_interval),
        unknown=_unknown_ops(analysis, why, carried, share),
        starting=float((share * divide(sides.starts[0], sides.before, by_work))[by_work].sum()),
        hidden=float((analysis.table.own - share)[carried].sum()),
        cached=float(share[carried & (fastest < ratio)].sum()),
        rebound=float(share[by_work & (sides.here.binding != sides.there.binding)].sum()),
        change=sides.change,
        kernels=kernel_range(kernels, kernel_draws, np.where(carried, projected, 0.0)),
        missing=tuple(
            sorted(
                {
                    name
                    for number in np.unique(target_roofs.of[by_work]).tolist()
                    for name in target_roofs.works[number].missing
                    if not name.startswith("launch.")  # `floor` holds no launches, whether their floor is known or not
                }
            )
        ),
        left_out=sides.left_out,
        kept=sides.borrowed,
        sheet=bool(sheet_mismatches(sides)[carried].any()),
        caches=sides.caches,
    )


def _check(analysis: Analysis, target: Device) -> None:
    if not analysis.device.ceilings:
        raise InputError(
            "The ceilings of the profile's device are not known, so no op can be projected: calibrate there, or name "
            "the device of a trace with `roofline import --device`."
        )
    for name, ceiling in target.ceilings.items():
        if not (math.isfinite(ceiling.value) and ceiling.value > 0):
            raise InputError(f"The ceiling {name!r} of the other device is not above 0; correct its file.")
    if not target.ceilings:
        raise InputError("The other device has no ceilings; `roofline devices` lists those that have.")


def _groups(analysis: Analysis) -> NDArray[np.int64]:
    """Look up the group of each op, as its index in GROUPS; shape (ops,)."""
    profile, columns = analysis.profile, analysis.table.columns
    if not profile.ops:
        return np.zeros(0, np.int64)
    codes = np.asarray([GROUPS.index(GROUP_OF[signature.op_class]) for signature in profile.signatures], np.int64)
    updating = np.asarray([phase == "optimizer" for phase in profile.phases], bool)
    return np.where(updating[columns.phase], GROUPS.index(GROUP_OF["optimizer"]), codes[columns.signature])


def _raise_to_floor(ratio: Array, analysis: Analysis, ours: Array, theirs: Array) -> Array:
    """Raise each ratio so that no op takes less than its floor there, unless it beats its floor here.

    ours, theirs: the least time of each op here and there by the device's own ceilings [s], not by the lower reached
    figures: an op that beats only those has broken no ceiling.
    """
    least = divide(theirs, analysis.table.own, analysis.table.own >= ours)
    return np.where(ratio > 0, np.maximum(ratio, least), ratio)


def _ratio_of_group(
    group: NDArray[np.int64], share: Array, ratio: Array, by_work: NDArray[np.bool_], unknown_work: NDArray[np.bool_]
) -> Array:
    """Give ops of unknown work the mean ratio of their group, weighted by time; 0 where too little of it is known.

    by_work: ops that are projected by their work. unknown_work: the ops that get the group's ratio.
    """
    size = len(GROUPS)
    times, carried, projected = (
        np.zeros(size) + np.bincount(group, weights, size) for weights in (share, share * by_work, share * ratio)
    )
    mean = divide(projected, carried, carried >= _MOSTLY_KNOWN * times)
    return np.where(unknown_work, mean[group], 0.0)


def _raise_start(least: float, value: float, interval: Interval) -> Interval:
    """Raise the start of a value's interval to the least time there, unless the value itself is lower [s]."""
    low, high = interval
    return max(low, min(least, value)), high


def _unknown_ops(analysis: Analysis, why: Words, carried: NDArray[np.bool_], share: Array) -> tuple[Unknown, ...]:
    durations, signature = analysis.table.own, analysis.table.columns.signature
    rows = []
    for reason in np.unique(why[why != CARRIED]).tolist():
        for assumed in (False, True):
            chosen = np.flatnonzero((why == reason) & (carried == assumed))
            if len(chosen):
                longest = chosen[int(durations[chosen].argmax())]
                name = analysis.profile.signatures[int(signature[longest])].name
                seconds, hidden = float(share[chosen].sum()), float((durations - share)[chosen].sum())
                rows.append(Unknown(reason, len(chosen), seconds, name, assumed, hidden))
    return tuple(sorted(rows, key=lambda row: -row.seconds))
