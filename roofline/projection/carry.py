"""What a step would take on another device: what each op attains of its roof here, under the ceilings there.

An op takes, by the model that all of this rests on, the longest of what its roofs ask of it, each as far as it is
attained: own = max over roofs k of t_k / e_k, where t_k is the op's term under roof k and e_k the fraction of it that
the op's code can attain wherever it runs. A measured time gives e of the roof that binds here, floor / own; of every
other roof it only says that e_k is at least t_k / own, and 1 at most. So of an op

    time there = floor there / (floor here / own)                 the same fraction of whichever roof binds there
    least      = max(floor there, t_b there / e_b)                b binds here; all other roofs perfectly attained
    most       = t_k there / (t_k here / own)                     k binds there; attained only as far as it was here

and where the same roof binds on both sides the three are one. Where the launch floor here is not known, what keeps an
op below half of its roof may be the time of its launch, which no ceiling shortens: the range then holds the loss
unchanged, too, floor there + loss here. What a device has no ceiling for cannot be carried:
what stands on one side only is left out on both, matrix products without their ceiling are not carried at all and
named, and what belongs to the host (the gap, launch floors without a figure there) stays as it is.

Both devices are brought to one measure in devices.py; the ratios above are in roofs.py, how far they may be wrong in
interval.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import draw
from roofline.analysis.floors import LINKS
from roofline.core.device import Device
from roofline.core.schema import Profile, Signature
from roofline.core.vocabulary import GROUP_OF, GROUPS, Group
from roofline.errors import InputError
from roofline.projection.devices import comparable_ceilings, with_launches, without_caches, without_optional
from roofline.projection.interval import Interval, against_sheet, around, drawn_ends
from roofline.projection.roofs import Array, divide, least_ratio, loss_unchanged, most_ratio, roofs


@dataclass(frozen=True, slots=True)
class Row:
    """Some ops of the step here and there. Times are share times [s].

    here, there: of the ops that were carried; interval: of `there`; floor: their least time there, by the ceilings
    alone. not_carried: time here of those that were not.
    """

    ops: int
    here: float
    there: float
    interval: Interval
    floor: float
    not_carried: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Ops that were not carried: why, how many, their time here [s], and the one of them that takes longest."""

    reason: str
    ops: int
    seconds: float
    most: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A step of `here` on the device `there`. Times in seconds.

    groups: by group, those with ops; total: of all ops. gap: carried unchanged; interval: of `seconds`.
    rebound: time here of carried ops that another roof binds there; doubtful: of those below half of their roof, whose
    launch floor here is not known. missing: ceilings of floors that `there` lacks.
    left_out: ceilings that one side lacks, left out on both; kept: launch floors of here that stand for missing ones.
    caches: whether both have a known cache bandwidth, else all traffic is main memory's on both sides. sheet: whether
    a measured ceiling stands against a datasheet's.
    """

    here: Analysis
    there: Device
    groups: Mapping[Group, Row]
    total: Row
    gap: float
    interval: Interval
    unknown: tuple[Unknown, ...]
    rebound: float
    doubtful: float
    missing: tuple[str, ...]
    left_out: tuple[str, ...]
    kept: tuple[str, ...]
    caches: bool
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

    sheet: the datasheet of the device of `here`, where there is one: a datasheet's ceiling there is held against the
    datasheet's here, not against what was measured.

    Raises InputError where there is no time to carry, or no ceiling to carry any of it by.
    """
    profile = here.profile
    _check(here, there)
    known = comparable_ceilings(here.device, there, sheet)
    # Three views of both sides, each the same on both: what is left is the difference of the devices.
    common, left_out = without_optional(known, there)
    held, kept = with_launches(there, common, profile)
    caches = bool(common.serves and held.serves)
    here_point = roofs(profile, common if caches else without_caches(common), upper=True)
    there_point = roofs(profile, held if caches else without_caches(held), upper=True)
    here_most = roofs(profile, common if common.serves else without_caches(common), upper=True)
    there_most = roofs(profile, held if held.serves else without_caches(held), upper=True)
    here_least, there_least = roofs(profile, common, upper=False), roofs(profile, there, upper=False)

    reasons = _not_carried(profile, known, there, here_point.floor, there_point.floor)
    carried = np.asarray([not reason for reason in reasons], bool)
    if not carried.any():
        why = ", ".join(sorted(set(reasons))) or "it has no ops"
        raise InputError(f"No op of the profile can be carried to another device: {why}.")
    ratio = divide(there_point.floor, here_point.floor, carried)
    fixed = loss_unchanged(here, here_point, there_point, ratio)
    least = np.minimum(least_ratio(here, here_least, there_least, ratio), fixed)
    most = np.maximum(most_ratio(here_most, there_most, ratio), fixed)

    share = here.table.share
    pure = np.where(carried, there_least.floor, 0.0)
    codes = [GROUPS.index(GROUP_OF[here.op_class(op)]) for op in profile.ops]
    group = np.asarray(codes, np.int64)
    opposed = against_sheet(here_point, there_point, common, held)
    doubtful = carried & (fixed != ratio)
    resamples = draw(here)
    low, high = drawn_ends(
        here, resamples, group, carried, (least, most), (here_point, there_point), (common, held), opposed
    )

    def row(rows: NDArray[np.bool_], number: int | None) -> Row:
        chosen = rows & carried
        seconds = float((share * ratio)[chosen].sum())
        ends = (low.sum(axis=0), high.sum(axis=0)) if number is None else (low[number], high[number])
        return Row(
            ops=int(rows.sum()),
            here=float(share[chosen].sum()),
            there=seconds,
            interval=around(seconds, *ends),
            floor=float(pure[rows].sum()),
            not_carried=float(share[rows & ~carried].sum()),
        )

    total = row(np.ones(len(codes), bool), None)
    return WhatIf(
        here=here,
        there=there,
        groups={GROUPS[code]: row(group == code, code) for code in sorted(set(codes))},
        total=total,
        gap=here.gap,
        interval=around(total.there + here.gap, low.sum(axis=0) + resamples.gap, high.sum(axis=0) + resamples.gap),
        unknown=_unknown(here, reasons),
        rebound=float(share[carried & (here_point.binding != there_point.binding)].sum()),
        doubtful=float(share[doubtful].sum()),
        missing=tuple(
            sorted({name for r, c in zip(there_least.rows, carried, strict=True) if c for name in r.missing})
        ),
        left_out=left_out,
        kept=kept,
        caches=caches,
        sheet=bool(opposed[carried].any()),
    )


def _check(here: Analysis, there: Device) -> None:
    if not here.timed:
        raise InputError(
            "The profile was only counted, so it has no time to carry: measure it without --count-only first."
        )
    if not here.profile.has_times:
        raise InputError("The profile holds no profiled step, so its ops have no time to carry: measure it again.")
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


# ------------------------------------------------------------------------------------- what is not carried


def _not_carried(profile: Profile, here: Device, there: Device, ours: Array, theirs: Array) -> list[str]:
    """Of each op why it is not carried, "" if it is. ours, theirs: the floors on both sides [s]."""
    reasons: dict[int, str] = {}
    found = []
    for row, op in enumerate(profile.ops):
        number = op.signature
        if number not in reasons:
            reasons[number] = _reason(profile.signatures[number], here, there)
        lacking = "" if ours[row] > 0 and theirs[row] > 0 else "no ceiling of its work is known on both devices"
        found.append(reasons[number] or lacking)
    return found


def _reason(signature: Signature, here: Device, there: Device) -> str:
    cost = signature.cost
    if not cost.flops_known or cost.bytes is None:
        return "work not known"
    if signature.op_class in LINKS:
        names = LINKS[signature.op_class]
        for device, side in ((here, "here"), (there, "there")):
            if not any(name in device.ceilings for name in names):
                return f"no ceiling {names[0]} {side}"
        return ""
    if cost.useful_flops:
        arithmetic = signature.precision.arithmetic if signature.precision else None
        if arithmetic is None:
            return "precision of a product not known"
        for device, side in ((here, "here"), (there, "there")):
            if f"matrix.{arithmetic}" not in device.ceilings:
                return f"no ceiling matrix.{arithmetic} {side}"
    return ""


def _unknown(here: Analysis, reasons: Sequence[str]) -> tuple[Unknown, ...]:
    share, signatures = here.table.share, here.profile.signatures
    rows: dict[str, list[int]] = {}
    for row, reason in enumerate(reasons):
        if reason:
            rows.setdefault(reason, []).append(row)
    found = []
    for reason, chosen in rows.items():
        most = max(chosen, key=lambda row: float(share[row]))
        name = signatures[here.profile.ops[most].signature].name
        found.append(Unknown(reason, len(chosen), float(share[chosen].sum()), name))
    return tuple(sorted(found, key=lambda unknown: -unknown.seconds))
