"""Read devices: files of the user's in TOML and JSON, and the cache of calibrations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec
import mutation
import seeds
import typed
from target import Target, scratch, written

from roofline import devices, plugins
from roofline.core.device import Device
from roofline.devices import calibration
from roofline.devices.calibration import Stored


def from_toml(data: bytes) -> None:
    """Read a device file of the user's."""
    devices.load(str(written("device.toml", data)))


def from_json(data: bytes) -> None:
    """Read the device of a JSON file."""
    devices.load(str(written("device.json", data)))


def calibrations(data: bytes) -> None:
    """Read a cache with one calibration, listed and as the one that is looked for."""
    folder = scratch("calibrations")
    folder.mkdir(exist_ok=True)
    os.environ["ROOFLINE_CACHE"] = str(folder)
    path = written("calibrations/cpu.json", data)
    calibration.stored()
    calibration._read(path, {}, lambda *_: None)


def _sheets() -> Iterator[bytes]:
    folder = plugins.folder("roofline.devices")
    for name in ("l4", "h100-sxm"):
        yield (folder / f"{name}.toml").read_bytes()
    yield b'name = "x"\nkind = "cpu"\nmatrix = {fp32 = 1e12}\ndram = {any = 1e10}\n'


def _devices() -> Iterator[bytes]:
    device = msgspec.json.encode(seeds.small().device)
    yield device
    yield b'{"device":' + device + b"}"


def _stored() -> Iterator[bytes]:
    form: dict[str, Any] = {"schema": calibration.SCHEMA, "key": {}, "full": True, "device": seeds.small().device}
    yield msgspec.json.encode(form)


TARGETS = {
    "device-toml": Target(from_toml, _sheets, mutation.of_toml),
    "device-json": Target(from_json, _devices, typed.json_of(Device)),
    "calibrations": Target(calibrations, _stored, typed.json_of(Stored)),
}
