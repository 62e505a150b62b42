"""Another device. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

from explained import findings, near
from msgspec.structs import replace
from synthetic import (
    LAYER,
    step,
)


def test_another_device() -> None:
    fast = step(tuple(change(row, own=row.own / (2 if row.flops else 4)) for row in LAYER * 4))
    device = fast.device
    ceilings = {
        name: replace(c, value=c.value / 2 if name.startswith("launch") else 2 * c.value)
        for name, c in device.ceilings.items()
    }
    fast = replace(fast, device=replace(device, name="Twice As Fast", ceilings=ceilings))
    found = {finding.rule: finding for finding in findings(step(), fast)}
    # The products attain 64 % on both, so all of their 4 * 1100 / 2 us is the devices'. The vector ops attain 35 % on
    # the slow one: of their 4 * (100 - 25) us the devices' part is what the floors differ by, 4 * 35 / 2 us, and the
    # rest is efficiency
    assert found["hardware"].seconds == near(2200 + 70)
    assert found["efficiency"].seconds == near(230)
