"""The ceilings that a measured step is put under: this machine's, or those that the user gives."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from roofline import devices, plugins
from roofline.comparison.parity.difference import plain
from roofline.core.device import Device
from roofline.devices import calibration, cpu
from roofline.errors import InputError, MeasurementError
from roofline.recording.recording import Say

#: What is being calibrated, how many probes are done, and of how many.
Progress = Callable[[str, int, int], None]


def measured(kind: str, threads: int | None, say: Say, progress: Progress | None = None) -> Device:
    """Measure this machine's ceilings, or take those that are kept.

    None of them where there is nothing to measure them with or that fails: work and times stand without.
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
    """Read the ceilings in a file, or those of a datasheet, for a step that runs on this machine.

    name: a calibration, a device file, a profile whose device is taken, or the name of a datasheet. The device keeps
    the name of this machine's, which is what the step runs on; say is told where the two differ. Raises InputError for
    a file that holds no device, one of another kind than `kind` or one without ceilings.
    """
    device = devices.load(name)
    if device.kind != kind:
        raise InputError(
            f"The ceilings in {plain(name)} are of a {plain(device.kind)} device and the step runs on {kind}: give "
            "those of this machine, or leave --ceilings out."
        )
    if not device.ceilings:
        raise InputError(f"{plain(name)} holds no ceilings: give a calibration, a device file or a profile with some.")
    here, conditions = _name(kind), dict(device.conditions)
    if device.name != here:
        say(f"The ceilings are those of {plain(device.name)}; the step runs on {here}.")
    if kind == "cpu" and conditions.get("threads", str(threads)) != str(threads):
        say(f"The ceilings were measured with {plain(conditions.pop('threads'))} threads; the step has {threads}.")
    return msgspec.structs.replace(device, name=here, conditions=conditions)


def _name(kind: str) -> str:
    """What the driver or the system calls this machine's device."""
    return calibration.key(kind, 1)["gpu"] if kind == "cuda" else cpu.detect().name
