"""Read the ceilings of `--ceilings FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roofline.core.device import Device
    from roofline.recording.request import Request

CEILINGS = (
    "Use the ceilings in this calibration, device file (TOML or JSON) or profile, or those of a named device; measure "
    "none."
)


def given_ceilings(name: str | None, request: Request) -> Device | None:
    """Read the device whose ceilings the user gave, None without. Raises InputError where they cannot be used."""
    if name is None:
        return None
    from roofline.cli.options.words import say
    from roofline.measuring import ceilings

    return ceilings.given(name, request.workload.device, request.threads, say)
