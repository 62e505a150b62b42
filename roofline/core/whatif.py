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
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from roofline.core import statistics
from roofline.core.analysis import Analysis, cold_traffic, executor_of
from roofline.core.device import Ceiling, Device
from roofline.core.draws import Draws, draw
from roofline.core.profile import Profile, Signature
from roofline.core.roofline import ATTAINED, LINKS, Terms, terms
from roofline.core.vocabulary import GROUP_OF, GROUPS, Group
from roofline.errors import InputError

Array = NDArray[np.float64]
Interval = tuple[float, float]

#: A measured ceiling down to this share of the datasheet's is believed (DESIGN section 4): where a measured ceiling
#: stands against a datasheet's, the other device's own may be as much lower than its datasheet.
SHEET_LOW = 0.5
#: No ceiling is drawn lower than 1 % of its value, whatever a file says of its spread.
_MOST = 0.99
#: Ceilings that an op can do without: known on one side only, they are left out on both.
_OPTIONAL = ("function", "vector")


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
    known = _like_with_like(here.device, there, sheet)
    # Three views of both sides, each the same on both: what is left is the difference of the devices.
    common, left_out = _common(known, there)
    held, kept = _with_launches(there, common, profile)
    caches = _served(common) and _served(held)
    here_point = _roofs(profile, common if caches else _without_caches(common), upper=True)
    there_point = _roofs(profile, held if caches else _without_caches(held), upper=True)
    here_most = _roofs(profile, common if _served(common) else _without_caches(common), upper=True)
    there_most = _roofs(profile, held if _served(held) else _without_caches(held), upper=True)
    here_least, there_least = _roofs(profile, common, upper=False), _roofs(profile, there, upper=False)

    reasons = _not_carried(profile, known, there, here_point.floor, there_point.floor)
    carried = np.asarray([not reason for reason in reasons], bool)
    if not carried.any():
        why = ", ".join(sorted(set(reasons))) or "it has no ops"
        raise InputError(f"No op of the profile can be carried to another device: {why}.")
    ratio = _divide(there_point.floor, here_point.floor, carried)
    fixed = _loss_unchanged(here, here_point, there_point, ratio)
    least = np.minimum(_least(here, here_least, there_least, ratio), fixed)
    most = np.maximum(_most(here_most, there_most, ratio), fixed)

    share = here.table.share
    pure = np.where(carried, there_least.floor, 0.0)
    codes = [GROUPS.index(GROUP_OF[here.op_class(op)]) for op in profile.ops]
    group = np.asarray(codes, np.int64)
    opposed = _opposed(here_point, there_point, common, held)
    doubtful = carried & (fixed != ratio)
    draws = draw(here)
    low, high = _drawn(here, draws, group, carried, (least, most), (here_point, there_point), (common, held), opposed)

    def row(rows: NDArray[np.bool_], number: int | None) -> Row:
        chosen = rows & carried
        seconds = float((share * ratio)[chosen].sum())
        ends = (low.sum(axis=0), high.sum(axis=0)) if number is None else (low[number], high[number])
        return Row(
            ops=int(rows.sum()),
            here=float(share[chosen].sum()),
            there=seconds,
            interval=_around(seconds, *ends),
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
        interval=_around(total.there + here.gap, low.sum(axis=0) + draws.gap, high.sum(axis=0) + draws.gap),
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


# ------------------------------------------------------------------------------------- both sides by one measure


def _is_sheet(ceiling: Ceiling) -> bool:
    return ceiling.spread is None and ceiling.drift is None


def _like_with_like(here: Device, there: Device, sheet: Device | None) -> Device:
    """`here` with its datasheet's ceilings where `there` has a datasheet's."""
    if sheet is None:
        return here
    figures = {
        name: sheet.ceilings[name]
        for name, other in there.ceilings.items()
        if _is_sheet(other) and name in here.ceilings and name in sheet.ceilings
    }
    return replace(here, ceilings={**here.ceilings, **figures})


def _common(here: Device, there: Device) -> tuple[Device, tuple[str, ...]]:
    """`here` without the ceilings that an op can do without and `there` lacks, and their names."""
    absent = tuple(
        sorted(name for name in here.ceilings if name.partition(".")[0] in _OPTIONAL and name not in there.ceilings)
    )
    return replace(here, ceilings={n: c for n, c in here.ceilings.items() if n not in absent}), absent


def _with_launches(there: Device, here: Device, profile: Profile) -> tuple[Device, tuple[str, ...]]:
    """`there` with the launch floors of here where it has none, and their names: launching is the host's."""
    step = executor_of(profile)
    used = {f"launch.{profile.signatures[op.signature].executor or step}" for op in profile.ops}
    kept = {name: here.ceilings[name] for name in sorted(used) if name in here.ceilings and name not in there.ceilings}
    return replace(there, ceilings={**there.ceilings, **kept}), tuple(kept)


def _served(device: Device) -> bool:
    """Whether it is known how fast the last-level cache is, and how large."""
    return bool(device.llc) and f"cache.{device.caches[-1].level}" in device.ceilings


def _without_caches(device: Device) -> Device:
    """The device with main memory alone."""
    ceilings = {name: c for name, c in device.ceilings.items() if not name.startswith("cache.")}
    return replace(device, ceilings=ceilings, caches=())


# ------------------------------------------------------------------------------------- terms and ratios


@dataclass(frozen=True, slots=True)
class _Roofs:
    """The terms of all ops on one side [s]: compute, memory, launch, shape (3, ops); nothing known is 0."""

    rows: tuple[Terms, ...]
    terms: Array

    @property
    def floor(self) -> Array:
        value: Array = self.terms.max(axis=0, initial=0.0)
        return value

    @property
    def binding(self) -> NDArray[np.int64]:
        which: NDArray[np.int64] = self.terms.argmax(axis=0)
        return which

    def at(self, which: NDArray[np.int64]) -> Array:
        """The term of each op under one roof."""
        value: Array = self.terms[which, np.arange(self.terms.shape[1])]
        return value

    @property
    def ceilings(self) -> list[str]:
        """The name of the ceiling that binds each op."""
        return [
            (row.compute_ceiling, row.memory_ceiling, row.launch_ceiling)[which]
            for row, which in zip(self.rows, self.binding.tolist(), strict=True)
        ]


def _roofs(profile: Profile, device: Device, upper: bool) -> _Roofs:
    """upper: where it is not known what the caches held, everything came from main memory; else as little as can be."""
    cold, executor = cold_traffic(profile, device), executor_of(profile)
    rows = tuple(
        terms(
            one := profile.signatures[op.signature], device, one.executor or executor, op.launches, read, written, high
        )
        for op, read, written, high in zip(profile.ops, *cold, strict=True)
    )
    values = [
        [row.compute or 0.0, (row.memory_high if upper else row.memory) or 0.0, row.launch or 0.0] for row in rows
    ]
    return _Roofs(rows, np.asarray(values, np.float64).reshape(len(rows), 3).T)


def _divide(a: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    out: Array = np.divide(a, b, out=np.zeros_like(a), where=where & (b > 0))
    return out


def _least(here: Analysis, ours: _Roofs, theirs: _Roofs, ratio: Array) -> Array:
    """The least ratio: every roof but the one that binds here perfectly attained, and no more than `ratio`."""
    own, which = here.table.own, ours.binding
    perfect = np.divide(theirs.floor, own, out=ratio.copy(), where=own > 0)
    same = _divide(theirs.at(which), ours.at(which), np.ones(len(own), bool))
    value: Array = np.where(ours.floor > 0, np.minimum(np.maximum(perfect, same), ratio), ratio)
    return value


def _loss_unchanged(here: Analysis, ours: _Roofs, theirs: _Roofs, ratio: Array) -> Array:
    """The ratio if all that an op takes above its floor stays: where no launch floor tells a launch from a loss."""
    own = here.table.own
    launch_known = np.asarray([row.launch is not None for row in ours.rows], bool)
    doubtful = ~launch_known & (ratio > 0) & (ours.floor < ATTAINED * own)
    value: Array = np.divide(theirs.floor + own - ours.floor, own, out=ratio.copy(), where=doubtful)
    return value


def _most(ours: _Roofs, theirs: _Roofs, ratio: Array) -> Array:
    """The greatest ratio: the roof that binds there is attained only as far as it was here."""
    which = theirs.binding
    value: Array = np.maximum(_divide(theirs.at(which), ours.at(which), np.ones(len(ratio), bool)), ratio)
    return np.where(ratio > 0, value, 0.0)


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


# ------------------------------------------------------------------------------------- intervals


def _opposed(ours: _Roofs, theirs: _Roofs, here: Device, there: Device) -> NDArray[np.bool_]:
    """Whether an op is measured against a datasheet: its binding ceiling is a datasheet's on one side only."""

    def figures(side: _Roofs, device: Device) -> NDArray[np.bool_]:
        return np.asarray([n in device.ceilings and _is_sheet(device.ceilings[n]) for n in side.ceilings], bool)

    opposed: NDArray[np.bool_] = figures(ours, here) != figures(theirs, there)
    return opposed


def _drawn(
    here: Analysis,
    draws: Draws,
    group: NDArray[np.int64],
    carried: NDArray[np.bool_],
    ratios: tuple[Array, Array],
    roofs: tuple[_Roofs, _Roofs],
    devices: tuple[Device, Device],
    opposed: NDArray[np.bool_],
) -> tuple[Array, Array]:
    """Time there by group at the lower and the upper end [s], drawn again and again; shape (groups, draws).

    ratios: of the lower and the upper end; roofs, devices: here and there. Profiled steps are drawn with replacement;
    each ceiling lies anywhere between its value and the lowest that it may be, once for all ops that it binds. A
    ceiling that is the same on both sides is drawn once.
    """
    profile, number = here.profile, len(draws.scale)
    own = (
        np.asarray([op.own_ns for op in profile.ops], np.float64).reshape(len(profile.ops), draws.steps.shape[1]) * 1e-9
    )
    overlap = np.asarray([op.overlap_ns for op in profile.ops], np.float64) * 1e-9
    rng = statistics.generator()
    drawn: dict[tuple[str, float, str, bool], Array] = {}

    def rate(name: str, device: Device, sheet: bool) -> Array:
        """The ceiling in each draw as a share of its value."""
        ceiling = device.ceilings.get(name)
        if ceiling is None:
            return np.ones(number)
        key = (name, ceiling.value, ceiling.source, sheet)
        if key not in drawn:
            uncertainty = 1 - SHEET_LOW if sheet and _is_sheet(ceiling) else min(device.uncertainty(name), _MOST)
            drawn[key] = 1 - rng.random(number) * uncertainty
        return drawn[key]

    pairs: dict[tuple[int, str, str, bool], list[int]] = {}
    for row, (ours, theirs) in enumerate(zip(roofs[0].ceilings, roofs[1].ceilings, strict=True)):
        if carried[row]:
            pairs.setdefault((int(group[row]), ours, theirs, bool(opposed[row])), []).append(row)
    low, high = np.zeros((len(GROUPS), number)), np.zeros((len(GROUPS), number))
    for (code, ours, theirs, sheet), rows in pairs.items():
        # The lower a ceiling really is, the more of it was attained here, and the less there is of it there.
        factor = draws.scale * rate(ours, devices[0], sheet) / rate(theirs, devices[1], sheet)
        for ends, ratio in zip((low, high), ratios, strict=True):
            # Overlap is known as a mean alone: in a draw of short times it may be more than they are.
            times = draws.steps @ (ratio[rows] @ own[rows]) - ratio[rows] @ overlap[rows]
            ends[code] += np.maximum(times, 0.0) * factor
    return low, high


def _around(value: float, low: Array, high: Array) -> Interval:
    """From the 2.5 % point of the lower ends to the 97.5 % point of the upper ones; it always holds the value."""
    return (
        min(value, float(np.percentile(low, 2.5))),
        max(value, float(np.percentile(high, 97.5))),
    )
