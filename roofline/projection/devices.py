"""Two devices by one measure, for a step carried from one to the other: what one side lacks is left out on both.

A datasheet's figure and what code reaches of it are far apart, and not equally far on every device. So devices are
compared by what was reached on both: measured here, or in a published benchmark (`Ceiling.reached`); where one of them
has no such figure, by the datasheets of both; and only where that fails, too, by what there is.
"""

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


def comparable(here: Device, there: Device, sheet: Device | None) -> tuple[Device, Device]:
    """Both devices with ceilings of one kind, each as far as both have it.

    sheet: the datasheet of `here`, where there is one.
    """
    ours, theirs = dict(here.ceilings), dict(there.ceilings)
    for name in ours.keys() & theirs.keys():
        if name.startswith(("launch.", "latency.")):
            continue
        own, other = ours[name], theirs[name]
        listed = sheet.ceilings.get(name) if sheet is not None else None
        reached = _reached(own) or (listed and _reached(listed)), _reached(other)
        printed = own if is_sheet(own) else listed, other if is_sheet(other) else None
        for a, b in (reached, printed):
            if a is not None and b is not None:
                ours[name], theirs[name] = a, b
                break
    return replace(here, ceilings=ours), replace(there, ceilings=theirs)


def _reached(ceiling: Ceiling) -> Ceiling | None:
    """What was reached of a ceiling, as one that was measured; None where nobody says."""
    if not is_sheet(ceiling):
        return ceiling
    if ceiling.reached is None:
        return None
    return Ceiling(value=ceiling.reached, source=ceiling.reached_by, spread=0.0, date=ceiling.date)


def without_optional(here: Device, there: Device) -> tuple[Device, Device, tuple[str, ...]]:
    """Both without the ceilings that an op can do without and that only one of them has, and the names of those."""
    alone = here.ceilings.keys() ^ there.ceilings.keys()
    absent = tuple(sorted(name for name in alone if name.partition(".")[0] in _OPTIONAL))
    one, other = ({n: c for n, c in side.ceilings.items() if n not in absent} for side in (here, there))
    return replace(here, ceilings=one), replace(there, ceilings=other), absent


def with_launches(there: Device, here: Device, profile: Profile) -> tuple[Device, tuple[str, ...]]:
    """`there` with the launch floors of here where it has none, and their names: launching is the host's.

    A GPU has kernels' start-up instead (startup.py).
    """
    if there.kind != "cpu":
        return there, ()
    step = executor_of(profile)
    used = {f"launch.{profile.signatures[op.signature].executor or step}" for op in profile.ops}
    kept = {name: here.ceilings[name] for name in sorted(used) if name in here.ceilings and name not in there.ceilings}
    return replace(there, ceilings={**there.ceilings, **kept}), tuple(kept)
