"""`roofline.whatif`: what a step would take on another device."""

from __future__ import annotations

from msgspec.structs import replace

from roofline import devices
from roofline.analysis.analysis import analyze_timed
from roofline.api._given import Run, profile
from roofline.core.device import Device
from roofline.projection.least import Least, least
from roofline.projection.project import WhatIf, project


def whatif(run: Run, device: str | Device) -> WhatIf | Least:
    """Carry what a step attains here to another device.

    run: a profile, or the path of a saved one. device: a name of `roofline devices`, a TOML or JSON file, or a Device.

    Returns a WhatIf, whose `seconds` are those of a step there and `interval` their range [s]; of a profile that was
    only counted a Least, the least time by the ceilings. Raises InputError where nothing can be carried.

    >>> roofline.whatif("p.json", "h100-sxm").speedup
    """
    # What hardware counted here depends on the caches here: on both sides all traffic is main memory's.
    loaded = replace(profile(run), counters=None)
    there = device if isinstance(device, Device) else devices.load(device)
    if loaded.profiled is None:
        return least(loaded, there)
    here = analyze_timed(loaded)
    return project(here, there, devices.datasheet(here.device.name, here.device.memory, here.device.kind))
