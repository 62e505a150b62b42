"""Read the ceilings of `--ceilings FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roofline.core.device import Device
    from roofline.recording.request import Request

CEILINGS = (
    "Use the ceilings in this file and measure none: of a calibration, a device file (TOML or JSON) or a profile; or "
    "the name of a device."
)


def given_ceilings(name: str | None, request: Request) -> Device | None:
    """Read the device whose ceilings the user gave, None without. Raises InputError where they cannot be used."""
    if name is None:
        return None
    from roofline.cli.options.words import say
    from roofline.measuring import ceilings

    return ceilings.given(name, request.workload.device, request.threads, say)
