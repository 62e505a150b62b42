"""What a step would take on another device: what each op attains of its roof here, under the ceilings there.

An op takes, by the model that all of this rests on, the time of its work at the ceilings and the time in which the
device gets going, each as far as its code attains it: own = (work + startup) / e. Its code attains the same there:

    time there = own * (work there + startup there) / (work here + startup here)

work is the longer of its compute and its memory term, startup that of startup.py, which no ceiling shortens: large
kernels follow the roofs, small ones the latency. Both devices are brought to one measure in devices.py. That other
kernels will run there, and attain more or less, is in the range (interval.py), which never begins below the ceilings
alone. What an op attains is told by its own time; what of that other ops share is taken off afterwards (overlap.py).

What a device has no ceiling for cannot be carried: matrix products and collectives without theirs are not carried at
all and named. Of an op whose work is not known the time is taken to change like that of the other ops of its group,
where those are at least half of it, and that is said. The gap belongs to the host and stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import draw
from roofline.core.device import Device
from roofline.core.vocabulary import GROUP_OF, GROUPS, Group
from roofline.errors import InputError
from roofline.projection.devices import comparable, with_launches, without_optional
from roofline.projection.interval import Interval, against_sheet, around, drawn, kernels
from roofline.projection.overlap import shared
from roofline.projection.reasons import CARRIED, NO_CEILING, PRECISION_NOT_KNOWN, WORK_NOT_KNOWN, Words, why_not
from roofline.projection.roofs import Array, divide, roofs, served
from roofline.projection.startup import startup
from roofline.shown import Shown

#: A group of which more is unknown is not carried by the rest of it. By choice, as in comparability.
_MOSTLY_KNOWN = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """Some ops of the step here and there. Times are share times [s].

    here, there: of the ops that were carried; interval: of `there`; floor: their least time there, by the ceilings
    alone, less what ops under another roof hide of it. assumed: what of `here` is of unknown work, carried like the
    rest of its group. not_carried: time here of those that were not, in which none that was carried ran.
    """

    ops: int
    here: float
    there: float
    interval: Interval
    floor: float
    assumed: float
    not_carried: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Ops whose work does not carry them: why, how many, their time here [s], and the one that takes longest.

    assumed: whether they were carried like the rest of their group. hidden: their own time here beside other ops [s].
    """

    reason: str
    ops: int
    seconds: float
    most: str
    assumed: bool
    hidden: float


@dataclass(frozen=True, slots=True, repr=False)
class WhatIf(Shown):
    """A step of `here` on the device `there`. Times in seconds.

    groups: by group, those with ops; total: of all ops. gap: carried unchanged; interval: of `seconds`. starting:
    what of the carried time here is the device's start-up, not its work. hidden: own time here of carried ops that
    other carried ops share. cached: time here of ops whose range goes below main memory's roof there. rebound: time
    here of carried ops that another roof binds there. kernels: how many times faster or slower other kernels may be.
    missing: ceilings of floors that `there` lacks. left_out: ceilings that one side lacks, left out on both; kept:
    launch floors of here that stand for missing ones. sheet: whether a measured ceiling stands against a datasheet's.
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
    kernels: float
    missing: tuple[str, ...]
    left_out: tuple[str, ...]
    kept: tuple[str, ...]
    sheet: bool

    @property
    def seconds(self) -> float:
        """The step there, without what was not carried."""
        return self.total.there + self.gap

    @property
    def compared(self) -> float:
        """The step here, without what was not carried: what `seconds` is held against."""
        return self.here.wall - self.total.not_carried

    @property
    def speedup(self) -> float | None:
        """How many times faster the step is there; what was not carried counts on neither side."""
        return self.compared / self.seconds if self.seconds > 0 and self.compared > 0 else None


def carry(here: Analysis, there: Device, sheet: Device | None = None) -> WhatIf:
    """The step of `here` on the device `there`.

    sheet: the datasheet of the device of `here`, where there is one: what was reached of it, or its figures, stand
    against those of the other device.

    Raises InputError where there is no time to carry, or no ceiling to carry any of it by.
    """
    profile = here.profile
    _check(here, there)
    # Views of both sides, each the same on both and on whatever device: what is left is the difference of the devices.
    common, held, left_out = without_optional(*comparable(here.device, there, sheet))
    held, kept = with_launches(held, common, profile)
    ours, theirs = common.without_caches, held.without_caches
    work_here, work_there = roofs(profile, ours), roofs(profile, theirs)
    columns = here.table.columns
    start_here, start_there = startup(profile, columns, common, held)
    alone, least_here = roofs(profile, there.without_caches), roofs(profile, here.device.without_caches)

    group = _groups(here)
    before, after = work_here.work + start_here, work_there.work + start_there
    why = why_not(profile, columns, ours, theirs, work_here.work, work_there.work)
    why = np.where((why == CARRIED) & ((before <= 0) | (after <= 0)), NO_CEILING, why)
    known = why == CARRIED
    floor = np.where(known, alone.work, 0.0)
    alike = divide(after, before, known)
    ratio = _not_below(alike, here, least_here.work, floor)
    # What a cache may have served here, one may serve there: the range goes below main memory's roof, `ratio` does not.
    (kept_here, _), (kept_there, cached) = served(profile, here.device), served(profile, there)
    cacheable = known & kept_here & kept_there
    lowest = np.where(cacheable, cached, floor)
    fastest = np.where(cacheable, _not_below(alike, here, least_here.work, lowest), ratio)
    assumed = _like_their_group(
        group, here.table.share, ratio, known, (why == WORK_NOT_KNOWN) | (why == PRECISION_NOT_KNOWN)
    )
    carried = known | (assumed > 0)
    if not carried.any():
        names = sorted(set(why.tolist())) or ["it has no ops"]
        raise InputError(f"No op of the profile can be carried to another device: {', '.join(names)}.")
    ratio, fastest = (np.where(known, one, assumed) for one in (ratio, fastest))
    taken = shared(profile, columns.own, columns.overlap, carried, ratio, alone.binding)
    share, projected = taken.here * here.scale, taken.there * here.scale
    floor, lowest = floor * (1 - taken.apart), lowest * (1 - taken.apart)
    apart = kernels(common, held)
    opposed = against_sheet(work_here, work_there, ours, theirs)
    resamples = draw(here)
    devices, sides = (ours, theirs), (work_here, work_there)
    starts = divide(start_here, before, known), divide(start_there, after, known)
    times, sooner = (
        drawn(here, resamples, group, carried, one, taken.hidden, sides, devices, starts, opposed, apart)
        for one in (ratio, fastest)
    )

    def row(rows: NDArray[np.bool_], number: int | None) -> Row:
        chosen = rows & carried
        seconds = float(projected[chosen].sum())
        each, early = (one.sum(axis=0) if number is None else one[number] for one in (times, sooner))
        return Row(
            ops=int(rows.sum()),
            here=float(share[chosen].sum()),
            there=seconds,
            interval=_above(float(lowest[rows].sum()), seconds, around(seconds, early, each)),
            floor=float(floor[rows].sum()),
            assumed=float(share[chosen & ~known].sum()),
            not_carried=float(share[rows & ~carried].sum()),
        )

    total = row(np.ones(len(share), bool), None)
    # Plain and profiled steps are drawn apart: in some draws the ops take longer than the step.
    gap = np.maximum(resamples.gap, 0.0)
    whole = around(total.there + here.gap, sooner.sum(axis=0) + gap, times.sum(axis=0) + gap)
    return WhatIf(
        here=here,
        there=there,
        groups={GROUPS[code]: row(group == code, code) for code in np.unique(group).tolist()},
        total=total,
        gap=here.gap,
        interval=_above(float(lowest.sum()) + here.gap, total.there + here.gap, whole),
        unknown=_unknown(here, why, carried, share),
        starting=float((share * starts[0])[known].sum()),
        hidden=float((here.table.own - share)[carried].sum()),
        cached=float(share[carried & (fastest < ratio)].sum()),
        rebound=float(share[known & (work_here.binding != work_there.binding)].sum()),
        kernels=apart,
        missing=tuple(
            sorted(
                {
                    name
                    for number in np.unique(alone.of[known]).tolist()
                    for name in alone.found[number].missing
                    if not name.startswith("launch.")  # `floor` holds no launches, whether their floor is known or not
                }
            )
        ),
        left_out=left_out,
        kept=kept,
        sheet=bool(opposed[carried].any()),
    )


def _check(here: Analysis, there: Device) -> None:
    if not here.device.ceilings:
        raise InputError(
            "No ceilings of the device of the profile are known, so no op has a fraction of them to carry: "
            "calibrate there, or name the device of a trace with `roofline import --device`."
        )
    for name, ceiling in there.ceilings.items():
        if not (math.isfinite(ceiling.value) and ceiling.value > 0):
            raise InputError(f"The ceiling {name!r} of the other device is not above 0; correct its file.")
    if not there.ceilings:
        raise InputError("The other device has no ceilings; `roofline devices` lists those that have.")


def _groups(here: Analysis) -> NDArray[np.int64]:
    """The group of each op, as its place in GROUPS."""
    profile, columns = here.profile, here.table.columns
    if not profile.ops:
        return np.zeros(0, np.int64)
    codes = np.asarray([GROUPS.index(GROUP_OF[one.op_class]) for one in profile.signatures], np.int64)
    updating = np.asarray([phase == "optimizer" for phase in profile.phases], bool)
    return np.where(updating[columns.phase], GROUPS.index(GROUP_OF["optimizer"]), codes[columns.signature])


def _not_below(ratio: Array, here: Analysis, ours: Array, theirs: Array) -> Array:
    """The ratios, none so low that an op would take less than its floor there, unless it does here.

    ours, theirs: the least time of each op here and there by the device's own ceilings [s]; what was reached of these
    is less, and an op that beats that has broken no ceiling.
    """
    least = divide(theirs, here.table.own, here.table.own >= ours)
    return np.where(ratio > 0, np.maximum(ratio, least), ratio)


def _like_their_group(
    group: NDArray[np.int64], share: Array, ratio: Array, known: NDArray[np.bool_], unknown: NDArray[np.bool_]
) -> Array:
    """The ratio of ops of unknown work: that of the rest of their group, weighted by time; 0 where too little is known.

    known: ops that are carried by their work. unknown: those in question.
    """
    size = len(GROUPS)
    times, carried, there = (
        np.zeros(size) + np.bincount(group, one, size) for one in (share, share * known, share * ratio)
    )
    mean = divide(there, carried, carried >= _MOSTLY_KNOWN * times)
    return np.where(unknown, mean[group], 0.0)


def _above(least: float, value: float, interval: Interval) -> Interval:
    """An interval of a value that does not begin below the least time there, unless the value does."""
    low, high = interval
    return max(low, min(least, value)), high


def _unknown(here: Analysis, why: Words, carried: NDArray[np.bool_], share: Array) -> tuple[Unknown, ...]:
    own, signature = here.table.own, here.table.columns.signature
    found = []
    for reason in np.unique(why[why != CARRIED]).tolist():
        for assumed in (False, True):
            chosen = np.flatnonzero((why == reason) & (carried == assumed))
            if len(chosen):
                most = chosen[int(own[chosen].argmax())]
                name = here.profile.signatures[int(signature[most])].name
                seconds, beside = float(share[chosen].sum()), float((own - share)[chosen].sum())
                found.append(Unknown(reason, len(chosen), seconds, name, assumed, beside))
    return tuple(sorted(found, key=lambda one: -one.seconds))
