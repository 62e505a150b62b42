"""Make the ceilings of two devices comparable; a ceiling that one of them lacks is left out for both.

Code reaches less than a datasheet says, and not the same fraction on every device. So a ceiling is compared by the
rates reached on both devices, measured here or in a published benchmark (`Ceiling.reached`); if one of them has none,
by the datasheets of both; and if that fails, by the two values as they are.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from roofline.core.device import Ceiling, Device
from roofline.core.executor import executor_of
from roofline.core.schema import Profile

#: A change of device: to the same processor with other threads or ceilings, to another GPU, or to another CPU. From
#: a CPU to a GPU and back counts as to another CPU, for want of steps that ran on both.
Change = Literal["processor", "cpu", "gpu"]
#: Ceilings that an op can do without: known on one side only, they are left out on both.
_OPTIONAL = ("function", "vector")


def find_change(source: Device, target: Device, sheet: Device | None) -> Change | None:
    """Tell which change of device it is: None where all stays alike.

    Launch floors of a GPU are ignored: they project no op (startup.py), and a trace brings its own. A cloud names its
    CPUs by their maker alone: of one processor their caches are of one size, too.
    """
    ours, theirs = (
        {name: c.value for name, c in side.ceilings.items() if side.kind == "cpu" or not name.startswith("launch.")}
        for side in (source, target)
    )
    if source.kind != target.kind:
        return "cpu" if "cpu" in (source.kind, target.kind) else "gpu"
    if ours == theirs:
        return None
    if source.kind != "cpu":
        return "processor" if target.name in (source.name, sheet.name if sheet else "") else "gpu"
    sizes = [[(cache.level, cache.size) for cache in side.caches] for side in (source, target)]
    return "processor" if source.name == target.name and sizes[0] == sizes[1] else "cpu"


def is_sheet(ceiling: Ceiling) -> bool:
    """Tell whether a ceiling comes from a datasheet: measured ones have a spread or a drift."""
    return ceiling.spread is None and ceiling.drift is None


def make_comparable(source: Device, target: Device, sheet: Device | None) -> tuple[Device, Device]:
    """Give both devices ceilings of the same kind (reached, or printed), where both have that kind.

    sheet: the datasheet of `source`, if there is one.
    """
    ours, theirs = dict(source.ceilings), dict(target.ceilings)
    for name in ours.keys() & theirs.keys():
        if name.startswith(("launch.", "latency.")):
            continue
        source_ceiling, target_ceiling = ours[name], theirs[name]
        listed = sheet.ceilings.get(name) if sheet is not None else None
        reached = _reached_rate(source_ceiling) or (listed and _reached_rate(listed)), _reached_rate(target_ceiling)
        printed = (
            source_ceiling if is_sheet(source_ceiling) else listed,
            target_ceiling if is_sheet(target_ceiling) else None,
        )
        for a, b in (reached, printed):
            if a is not None and b is not None:
                ours[name], theirs[name] = a, b
                break
    return replace(source, ceilings=ours), replace(target, ceilings=theirs)


def _reached_rate(ceiling: Ceiling) -> Ceiling | None:
    """Return the reached rate of a ceiling, as a measured ceiling; None where it is not known."""
    if not is_sheet(ceiling):
        return ceiling
    if ceiling.reached is None:
        return None
    return Ceiling(value=ceiling.reached, source=ceiling.reached_by, spread=0.0, date=ceiling.date)


def drop_optional(source: Device, target: Device) -> tuple[Device, Device, tuple[str, ...]]:
    """Drop the optional ceilings that only one device has; return both devices and the dropped names."""
    one_sided = source.ceilings.keys() ^ target.ceilings.keys()
    absent = tuple(sorted(name for name in one_sided if name.partition(".")[0] in _OPTIONAL))
    source_ceilings, target_ceilings = (
        {n: c for n, c in side.ceilings.items() if n not in absent} for side in (source, target)
    )
    return replace(source, ceilings=source_ceilings), replace(target, ceilings=target_ceilings), absent


def borrow_launches(target: Device, source: Device, profile: Profile) -> tuple[Device, tuple[str, ...]]:
    """Give a CPU `target` the launch floors that it lacks from `source`, and return it with their names.

    Launching is the host's work. A GPU stays as it is: it has the start-up of kernels instead (startup.py).
    """
    if target.kind != "cpu":
        return target, ()
    step = executor_of(profile)
    used = {f"launch.{profile.signatures[op.signature].executor or step}" for op in profile.ops}
    borrowed = {
        name: source.ceilings[name] for name in sorted(used) if name in source.ceilings and name not in target.ceilings
    }
    return replace(target, ceilings={**target.ceilings, **borrowed}), tuple(borrowed)
