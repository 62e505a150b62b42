"""Project a step to another device: `roofline.whatif`."""

from __future__ import annotations

from msgspec.structs import replace

from roofline import devices
from roofline.analysis.analysis import analyze_timed
from roofline.api._run import Run, profile
from roofline.core.device import Device
from roofline.projection.least import Least, least
from roofline.projection.project import WhatIf, project


def whatif(run: Run, device: str | Device) -> WhatIf | Least:
    """Project a step to another device by the fraction of its roof that each op reaches here.

    run: a profile, or the path of a saved one. device: a name of `roofline devices`, a TOML or JSON file, or a Device;
    a step of several equal GPUs is projected to as many of it.

    Returns a WhatIf, whose `seconds` are the time of a step there and `interval` its range [s]; for a profile that was
    only counted a Least, the least time by the ceilings. Raises InputError where no op can be projected.

    >>> roofline.whatif("p.json", "h100-sxm").speedup
    """
    # Hardware counters depend on the caches of this device: for both devices all traffic is main memory's.
    loaded = replace(profile(run), counters=None)
    here = loaded.device
    target = (device if isinstance(device, Device) else devices.load(device)).together(here.number)
    if loaded.profiled is None:
        return least(loaded, target)
    sheet = devices.datasheet(here.single_name, here.single_memory, here.kind)
    return project(analyze_timed(loaded), target, None if sheet is None else sheet.together(here.number))
