"""The launch floor of a trace is a range: its shortest kernel was launched, but it also worked."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from roofline.analysis.caches.traffic import Cold, cold_traffic
from roofline.analysis.columns import columns
from roofline.analysis.floors import ATTAINED
from roofline.analysis.op_table import op_terms
from roofline.core.arrays import Array
from roofline.core.device import Ceiling, Device
from roofline.core.schema import Profile

#: Times are recorded in whole nanoseconds [s].
_NANOSECOND = 1e-9
#: Ends of a range that are no further apart are one number, as elsewhere: half a percent.
_SAME = 0.995


def seen_device(profile: Profile) -> Device:
    """Return the device of a profile, with what its launches show."""
    return with_launch_ranges(profile, profile.device, cold_traffic(profile, profile.device))


def with_launch_ranges(profile: Profile, device: Device, cold: Cold) -> Device:
    """Return `device` with a range for each launch floor that is a trace's own: its shortest kernel, copy or fill.

    No launch takes longer than that one, which is the upper end. How much of it was launching no trace says. A kernel
    that reaches half of the roof of its work is bound by it (`ATTAINED`), all from main memory, and may have launched
    in no time. So the lower end is what is left of the shortest ones beyond twice the least work of any of them, and
    nothing where none of them has known work.
    """
    names = [
        name for name, ceiling in device.ceilings.items() if ceiling.from_trace and ceiling.value == ceiling.shortest
    ]
    if not names or not profile.ops or profile.profiled is None:
        return device
    op_floors, work = op_terms(profile, device, cold)
    of = columns(profile)
    launches = np.maximum(of.launches, 1)
    shortest = of.steps.min(axis=1, initial=np.inf) / launches
    work_seconds = np.asarray([_work(row.missing, row.compute, row.memory_high) for row in op_floors])[work] / launches
    by = np.asarray([row.launch_ceiling for row in op_floors], object)[work]
    ceilings = dict(device.ceilings)
    for name in names:
        chosen = (by == name) & (shortest > 0)
        ceilings[name] = _range(ceilings[name], shortest[chosen], work_seconds[chosen])
    return replace(device, ceilings=ceilings)


def _range(ceiling: Ceiling, launch_seconds: Array, work_seconds: Array) -> Ceiling:
    """Give a launch floor a range. launch_seconds: of each op; work_seconds: at the ceilings, nan where not known.

    The shortest ones are those that are as short as the shortest hundredth of the trace, which the spread says.
    """
    longest = max(ceiling.value / (1 - (ceiling.spread or 0.0)), ceiling.high or 0.0)
    shortest = work_seconds[launch_seconds < longest + _NANOSECOND / 2]
    if not len(shortest):
        return ceiling
    low = max(_NANOSECOND, ceiling.value - float(np.nanmin(shortest, initial=np.inf)) / ATTAINED)
    if low >= _SAME * ceiling.value:
        return ceiling
    return replace(ceiling, value=low, high=ceiling.high or ceiling.value)


def _work(missing: tuple[str, ...], *terms: float | None) -> float:
    """Return the longest term of the work [s], nan where it is not known; no datasheet has rates of functions."""
    open_ = any(name.startswith(("matrix", "dram", "link")) for name in missing)
    return np.nan if open_ else max((term for term in terms if term is not None), default=np.nan)
