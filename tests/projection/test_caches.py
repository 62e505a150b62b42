"""What caches may serve on another device, of a trace that names no buffers."""

from __future__ import annotations

import math

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.schema import Imported
from roofline.projection.kernels import FITTED
from roofline.projection.project import WhatIf, project

US = 1e-6


def test_the_range_holds_what_caches_of_both_may_serve() -> None:
    # 80 kB: 8 µs at 10 GB/s of main memory, 1.6 µs at 50 GB/s of a cache that holds them. Of 8.5 µs nobody knows which
    # it was. At half of main memory's rate 8.5 * (16 + 5) / (8 + 5) = 13.7 µs, and no less than the 16 of its roof. If
    # the cache served it on both, it is below that roof: 13.7 µs, or less by what own code is off in nine of ten.
    moved = Cost(bytes_read=40e3, bytes_written=40e3)
    signature = replace(handmade.SIGNATURES[4], cost=moved, reads=(40e3,), writes=(40e3,))
    op = replace(handmade.op(0, 0, 0, 8, 0, (), ()), own_ns=(8_500,) * 3)
    fast = {"cache_llc": 50e9}

    def step(there: Device, traced: bool = True) -> WhatIf:
        imported = Imported(files=("trace.json",)) if traced else None
        here = handmade.device(**fast)
        return project(
            analyze(handmade.profile(device=here, signatures=(signature,), ops=(op,), imported=imported)), there
        )

    slow = handmade.device(dram_copy=5e9, **fast)
    both = step(slow)
    assert (both.total.projected, both.total.floor) == (pytest.approx(16 * US), pytest.approx(16 * US))
    assert both.cached == pytest.approx(8.5 * US)
    own_code = math.exp(2.132 * FITTED.spreads["processor"].deviations[0])
    assert both.total.interval[0] == pytest.approx(8.5 * 21 / 13 / own_code * US, rel=0.04)
    bare = {name: c for name, c in slow.ceilings.items() if not name.startswith("cache")}
    for one in (step(replace(slow, ceilings=bare)), step(slow, traced=False)):
        assert (one.cached, one.total.interval[0]) == (0, pytest.approx(16 * US))
        assert one.total.interval[1] == pytest.approx(both.total.interval[1])


def test_measured_caches_of_both_hold_what_fits_them() -> None:
    # GELU reads 0.4 MB that layer norm left in the cache and writes 0.4: 20 µs at 40 GB/s of both, 80 at 10 GB/s of
    # main memory, and 5 to get going. Half the main memory's rate costs it nothing, half the cache's 20 µs.
    gelu = replace(handmade.OPS[2], overlap_ns=0, own_ns=(50_000,) * 3)
    cost = Cost(bytes_read=400e3, bytes_written=400e3)
    signature = replace(handmade.SIGNATURES[4], cost=cost, reads=(400e3,), writes=(400e3,))
    ops = (replace(gelu, signature=0, reads=(0,), writes=(1,)), replace(gelu, signature=0, reads=(1,), writes=(0,)))

    def measured(**rates: float) -> Device:
        device = handmade.device(**rates)
        return replace(device, ceilings={name: replace(c, spread=0.0) for name, c in device.ceilings.items()})

    def step(there: Device, here: Device | None = None) -> WhatIf:
        profile = handmade.profile(device=here or measured(), signatures=(signature,), ops=ops)
        return project(analyze(profile), there)

    slow = step(measured(dram_copy=5e9, dram_inplace=5e9))
    assert slow.caches
    assert slow.total.projected == pytest.approx(100 * US)
    assert step(measured(cache_llc=20e9)).total.projected == pytest.approx(100 * 45 / 25 * US)
    # A cache that is only printed or that holds less does not serve them.
    assert not step(handmade.device(cache_llc=20e9)).caches
    less = measured()
    less = replace(less, caches=tuple(replace(cache, size=100e3) for cache in less.caches))
    assert step(less).total.projected > 200 * US
