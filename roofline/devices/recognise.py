"""Which device a trace was recorded on, from what the trace says about it: its name and its memory, nothing guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline import devices
from roofline.core import sound
from roofline.core.device import Device

_LONGEST = 80  # characters of a name


def recognise(properties: Mapping[str, Any], kind: str) -> tuple[Device, bool]:
    """The device of a trace, and whether its ceilings are known.

    properties: one entry of a Kineto trace's deviceProperties ("name", "totalGlobalMem" [byte]), empty where the trace
    has none. kind: "cuda" or "rocm". The name must be one that the driver of a known device gives, letter case aside,
    and the memory one that the device can have: an unknown device gets no ceilings rather than another one's.
    """
    name, memory = properties.get("name"), properties.get("totalGlobalMem")
    name = " ".join(name.split())[:_LONGEST] if isinstance(name, str) else ""
    size = sound.measured(memory) or None
    found = devices.datasheet(name, size, kind) if name else None
    if found is not None:
        return found, True
    vendor = "AMD GPU" if kind == "rocm" else "NVIDIA GPU"
    known = name or (f"{vendor} of {size / 2**30:.0f} GiB" if size else vendor)
    return Device(name=known, kind=kind, ceilings={}, memory=size), False
