"""Another device. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import handmade
import pytest
from explained import findings, near
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.comparison.causes.findings import claimed
from roofline.comparison.terms import compare
from roofline.core.schema import Imported


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


@pytest.mark.parametrize(("memory", "told"), [(8e9, -4 * 5), (20e9, 0)])
def test_where_the_two_ends_of_floors_disagree_nobody_knows_which_device_is_faster(memory: float, told: float) -> None:
    """0.6 MB from the cache take 15 µs at 40 GB/s and 20 µs at 30: 4 x -5 µs, as both runs attain less than half in 70.

    From memory they take 60 µs at 10 GB/s, and on the other device all of the 70 µs at 8, or 30 µs at 20 GB/s: there it
    is the faster one.
    """
    add = Row("aten::add", "pointwise", 70, bytes=0.6e6)
    other = replace(handmade.device(dram_copy=memory, cache_llc=30e9), name="Another")
    runs = [
        step([add] * 4, imported=Imported(), device=handmade.without_launch(device))
        for device in (handmade.device(), other)
    ]
    attribution = claimed(compare(*runs))
    hardware = [entry for entry in attribution.entries if entry.claim.rule == "hardware"]
    assert sum(float((attribution.a.seconds[one.a] * one.parts_a).sum() - (attribution.b.seconds[one.b] * one.parts_b)
               .sum()) for one in hardware) == pytest.approx(told * 1e-6, abs=1e-12)  # fmt: skip
