"""Find the reason why an op cannot be projected to another device by its own work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.columns import Columns
from roofline.analysis.floors import LINKS
from roofline.core.device import DRAM, Device
from roofline.core.schema import Profile, Signature

CARRIED = ""
#: Reasons with which an op's time may change like that of the rest of its group; not so if a ceiling is missing.
WORK_NOT_KNOWN, PRECISION_NOT_KNOWN = "work not known", "precision of a product not known"
NO_CEILING = "no ceiling of its work is known on both devices"

Words = NDArray[np.str_]


def find_reasons(
    profile: Profile,
    columns: Columns,
    source: Device,
    target: Device,
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
) -> Words:
    """Name the reason why each op is not projected by its work, CARRIED if it is; shape (ops,).

    ours, theirs: the time of its work at the ceilings of source and target [s].
    """
    by_signature = np.asarray([_reason(signature, source, target) for signature in profile.signatures], np.str_)
    if not profile.ops:
        return np.zeros(0, np.str_)
    empty = np.asarray([_is_empty(signature) for signature in profile.signatures], bool)[columns.signature]
    lacking = np.where(empty | ((ours > 0) & (theirs > 0)), CARRIED, NO_CEILING)
    reasons = by_signature[columns.signature]
    return np.where(reasons == CARRIED, lacking, reasons)


def _reason(signature: Signature, source: Device, target: Device) -> str:
    cost = signature.cost
    if not cost.flops_known or cost.bytes is None:
        return WORK_NOT_KNOWN
    if signature.op_class in LINKS:
        return _missing_ceiling(LINKS[signature.op_class], source, target)
    if cost.useful_flops:
        arithmetic = signature.precision.arithmetic if signature.precision else None
        if arithmetic is None:
            return PRECISION_NOT_KNOWN
        if lacking := _missing_ceiling((f"matrix.{arithmetic}",), source, target):
            return lacking
    return _missing_ceiling(tuple(f"dram.{pattern}" for pattern in DRAM), source, target) if cost.bytes else CARRIED


def _is_empty(signature: Signature) -> bool:
    """Tell whether an op is known to do nothing but start."""
    cost = signature.cost
    return not (cost.bytes or cost.useful_flops or cost.vector_flops or cost.functions)


def _missing_ceiling(names: tuple[str, ...], source: Device, target: Device) -> str:
    """Name the device that has none of these ceilings; CARRIED if both have one."""
    for device, side in ((source, "here"), (target, "there")):
        if not any(name in device.ceilings for name in names):
            return f"no ceiling {names[0]} {side}"
    return CARRIED
