"""Two devices by one measure, for a step carried from one to the other: what one side lacks is left out on both."""

from __future__ import annotations

from msgspec.structs import replace

from roofline.core.device import Ceiling, Device
from roofline.core.executor import executor_of
from roofline.core.schema import Profile

#: Ceilings that an op can do without: known on one side only, they are left out on both.
_OPTIONAL = ("function", "vector")


def is_sheet(ceiling: Ceiling) -> bool:
    """Whether a ceiling is a datasheet's: measured ones say how far they spread."""
    return ceiling.spread is None and ceiling.drift is None


def comparable_ceilings(here: Device, there: Device, sheet: Device | None) -> Device:
    """`here` with its datasheet's ceilings where `there` has a datasheet's."""
    if sheet is None:
        return here
    figures = {
        name: sheet.ceilings[name]
        for name, other in there.ceilings.items()
        if is_sheet(other) and name in here.ceilings and name in sheet.ceilings
    }
    return replace(here, ceilings={**here.ceilings, **figures})


def without_optional(here: Device, there: Device) -> tuple[Device, tuple[str, ...]]:
    """`here` without the ceilings that an op can do without and `there` lacks, and their names."""
    absent = tuple(
        sorted(name for name in here.ceilings if name.partition(".")[0] in _OPTIONAL and name not in there.ceilings)
    )
    return replace(here, ceilings={n: c for n, c in here.ceilings.items() if n not in absent}), absent


def with_launches(there: Device, here: Device, profile: Profile) -> tuple[Device, tuple[str, ...]]:
    """`there` with the launch floors of here where it has none, and their names: launching is the host's."""
    step = executor_of(profile)
    used = {f"launch.{profile.signatures[op.signature].executor or step}" for op in profile.ops}
    kept = {name: here.ceilings[name] for name in sorted(used) if name in here.ceilings and name not in there.ceilings}
    return replace(there, ceilings={**there.ceilings, **kept}), tuple(kept)


def without_caches(device: Device) -> Device:
    """The device with main memory alone."""
    ceilings = {name: c for name, c in device.ceilings.items() if not name.startswith("cache.")}
    return replace(device, ceilings=ceilings, caches=())
