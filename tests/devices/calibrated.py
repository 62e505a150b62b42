"""A cache of calibrations made by hand, with ceilings that nothing reaches: tests need not measure any."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from roofline.core.device import Cache, Ceiling, Device
from roofline.devices import calibration, cpu


def roomy() -> Device:
    """A device whose ceilings nothing here can reach: no op is ever above one."""
    rates = {
        **{f"matrix.{precision}": 1e15 for precision in ("fp64", "fp32", "bf16", "fp16")},
        **{f"vector.{precision}": 1e14 for precision in ("fp64", "fp32", "bf16", "fp16")},
        **{f"function.{name}": 1e14 for name in ("exp", "tanh", "erf", "log", "sqrt", "rsqrt", "pow", "random")},
        **{f"dram.{pattern}": 1e14 for pattern in ("read", "write", "copy", "triad", "inplace", "update")},
        **{f"cache.{level}": 1e15 for level in ("l2", "llc")},
        "launch.torch-eager": 1e-9,
    }
    return Device(
        name="Roomy CPU",
        kind="cpu",
        ceilings={name: Ceiling(value=value, source="made up", spread=0.01) for name, value in rates.items()},
        caches=(Cache(level="llc", size=32e6, source="made up"),),
    )


def fill(folder: Path) -> None:
    """Keep one in a folder of calibrations for every number of threads."""
    here = calibration.period()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOFLINE_CACHE", str(folder))
        for threads in range(1, len(cpu.affinity()) + 1):
            key = calibration.key("cpu", threads)
            kept = calibration.Stored(schema=calibration.SCHEMA, key=key, full=True, device=roomy(), boots=(here,))
            calibration.location(key).write_bytes(msgspec.json.encode(kept))
