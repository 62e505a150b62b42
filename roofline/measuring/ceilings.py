"""Choose the ceilings of a measured step: this machine's, or those that the user gives."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from roofline import devices, plugins
from roofline.core.device import Device
from roofline.devices import calibration, cpu
from roofline.errors import InputError, MeasurementError
from roofline.recording.recording import Say
from roofline.units import plain

#: (the ceiling that is measured, number of finished probes, number of probes).
Progress = Callable[[str, int, int], None]


def measured(kind: str, threads: int | None, say: Say, progress: Progress | None = None) -> Device:
    """Measure this machine's ceilings, or take the cached ones.

    The device has no ceilings where torch is missing or measuring fails: work and times are valid without.
    """
    if kind == "cpu" and not plugins.importable("torch"):
        say("No ceilings: they are measured with torch, which is not installed (`pip install 'roofline[torch]'`).")
    else:
        try:
            return calibration.calibrate(kind, threads, progress=progress)
        except MeasurementError as error:
            say(f"No ceilings: {error}")
    return Device(name=_name(kind), kind=kind, ceilings={})


def given(name: str, kind: str, threads: int | None, say: Say) -> Device:
    """Read the ceilings in a file, or those of a datasheet, for a step that runs here: `read`, then `adopt`."""
    return adopt(read(name, kind), threads, say)


def read(name: str, kind: str) -> Device:
    """Read a device whose ceilings may be used for a step on `kind`.

    name: a calibration, a device file, a profile whose device is taken, or the name of a datasheet. Raises InputError
    for a file that holds no device, one of another kind or one without ceilings.
    """
    device = devices.load(name)
    if device.kind != kind:
        raise InputError(
            f"The ceilings in {plain(name)} belong to a {plain(device.kind)} device, and the step runs on {kind}: give "
            "those of this machine, or leave --ceilings out."
        )
    if not device.ceilings:
        raise InputError(f"{plain(name)} holds no ceilings: give a calibration, a device file or a profile with some.")
    return device


def adopt(device: Device, threads: int | None, say: Say) -> Device:
    """Make this machine's device with the ceilings of another one, which `ceilings_of` names.

    The step runs on this machine, so the device has its name; of several devices that a profile held together the
    ceilings are those of one. say reports where the two differ.
    """
    device = device.together(1)
    machine, origin, conditions = _name(device.kind), device.ceilings_of or device.name, dict(device.conditions)
    if origin != machine:
        say(f"The ceilings are those of {plain(origin)}; the step runs on {machine}.")
    if device.kind == "cpu" and conditions.get("threads", str(threads)) != str(threads):
        say(f"The ceilings were measured with {plain(conditions.pop('threads'))} threads; the step has {threads}.")
    return msgspec.structs.replace(device, name=machine, conditions=conditions, ceilings_of=origin)


def _name(kind: str) -> str:
    """Name this machine's device as the driver or the system does."""
    return calibration.key(kind, 1)["gpu"] if kind == "cuda" else cpu.detect().name
