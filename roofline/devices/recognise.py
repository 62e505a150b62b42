"""Recognise the device of a trace from the name and the memory that the trace states; guess nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline import devices
from roofline.core import validate
from roofline.core.device import Device

_LONGEST = 80  # characters of a name


def recognise(properties: Mapping[str, Any], kind: str) -> tuple[Device, bool]:
    """Return the device of a trace, and whether its ceilings are known.

    properties: one entry of a Kineto trace's deviceProperties ("name", "totalGlobalMem" [byte]), empty where the trace
    has none. kind: "cuda" or "rocm". The name must be one that the driver of a known device gives, letter case aside,
    and the memory one that the device can have: an unknown device gets no ceilings rather than another device's.
    """
    name, memory = properties.get("name"), properties.get("totalGlobalMem")
    name = " ".join(name.split())[:_LONGEST] if isinstance(name, str) else ""
    size = validate.measured(memory) or None
    sheet = devices.datasheet(name, size, kind) if name else None
    if sheet is not None:
        return sheet, True
    vendor = "AMD GPU" if kind == "rocm" else "NVIDIA GPU"
    label = name or (f"{vendor} of {size / 2**30:.0f} GiB" if size else vendor)
    return Device(name=label, kind=kind, ceilings={}, memory=size), False
