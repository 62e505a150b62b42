"""Why an op cannot be carried to another device by its own work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.columns import Columns
from roofline.analysis.floors import LINKS
from roofline.core.device import Device
from roofline.core.schema import Profile, Signature

CARRIED = ""
#: Of these the time may change like that of the rest of their group; of what lacks a ceiling nobody knows how.
WORK_NOT_KNOWN, PRECISION_NOT_KNOWN = "work not known", "precision of a product not known"
NO_CEILING = "no ceiling of its work is known on both devices"

Words = NDArray[np.str_]


def why_not(
    profile: Profile,
    columns: Columns,
    here: Device,
    there: Device,
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
) -> Words:
    """Of each op why it is not carried by its work, CARRIED if it is.

    ours, theirs: the time of its work and of starting up at the ceilings of both [s].
    """
    by_signature = np.asarray([_reason(signature, here, there) for signature in profile.signatures], np.str_)
    if not profile.ops:
        return np.zeros(0, np.str_)
    lacking = np.where((ours > 0) & (theirs > 0), CARRIED, NO_CEILING)
    found = by_signature[columns.signature]
    return np.where(found == CARRIED, lacking, found)


def _reason(signature: Signature, here: Device, there: Device) -> str:
    cost = signature.cost
    if not cost.flops_known or cost.bytes is None:
        return WORK_NOT_KNOWN
    if signature.op_class in LINKS:
        return _without(LINKS[signature.op_class], here, there)
    if cost.useful_flops:
        arithmetic = signature.precision.arithmetic if signature.precision else None
        return PRECISION_NOT_KNOWN if arithmetic is None else _without((f"matrix.{arithmetic}",), here, there)
    return CARRIED


def _without(names: tuple[str, ...], here: Device, there: Device) -> str:
    """What is said where one of the devices has none of some ceilings."""
    for device, side in ((here, "here"), (there, "there")):
        if not any(name in device.ceilings for name in names):
            return f"no ceiling {names[0]} {side}"
    return CARRIED
