"""Describe this machine as far as measured times depend on it: device, threads, libraries and versions."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from roofline import plugins
from roofline.devices import calibration, cpu
from roofline.recording.backend import load
from roofline.version import __version__


def describe(kind: str, backends: Sequence[str]) -> dict[str, object]:
    """Describe this machine in JSON. kind: "cpu" or "cuda"; backends: whose frameworks are listed.

    device: what the ceilings depend on, but for the numbers by which one machine tells its processors apart. versions:
    of roofline, Python and the installed frameworks.
    """
    device = calibration.key(kind, cpu.detect().cores)
    device["affinity"] = f"{len(cpu.affinity())} CPUs"
    device.pop("visible", None)
    versions = {"roofline": __version__, "python": platform.python_version()}
    for name in backends:
        backend = load(name)
        installed = plugins.distributions(backend.extras[0], backend.requires)
        versions |= {library: number for library, number in installed.items() if number is not None}
    return {"device": device, "versions": versions}
