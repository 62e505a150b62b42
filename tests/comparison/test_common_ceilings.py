"""Two runs under ceilings that are known alike."""

from __future__ import annotations

import handmade
import numpy as np
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze_timed
from roofline.comparison.common_ceilings import analyze_together, best_ceilings
from roofline.comparison.ranking import on_common_ceilings
from roofline.content import wording
from roofline.core.device import Ceiling, Device
from roofline.core.schema import Imported, Profile

NAME = "launch.torch-eager"
#: Measured on the device, and the shortest kernel of a trace of it: 8 us, a layer norm of 8 kB.
MEASURED = Ceiling(value=5e-6, source="measured", shortest=8e-6)
SEEN = Ceiling(value=8e-6, source="the trace", shortest=8e-6, spread=0.0)


def on(name: str, **ceilings: Ceiling | None) -> Profile:
    """The step made by hand as a trace of a device of that name; names of ceilings have "_" for "."."""
    profile = handmade.profile(imported=Imported(files=("trace.json",)))
    changed = {**profile.device.ceilings, **{key.replace("_", ".", 1): value for key, value in ceilings.items()}}
    known = {key: value for key, value in changed.items() if value is not None}
    return replace(profile, device=replace(profile.device, name=name, ceilings=known))


def test_the_shortest_kernel_of_a_trace_is_no_floor_of_its_device() -> None:
    a, b = (on(name, **{"launch_torch-eager": one}) for name, one in (("a", MEASURED), ("b", SEEN)))
    one, other = analyze_together(a, b)
    assert NAME not in one.device.ceilings
    assert list(one.table.floor) == list(other.table.floor)
    # Two measured ones are compared as they are, and of one device the lower one holds for both.
    one, other = analyze_together(a, on("b", **{"launch_torch-eager": replace(MEASURED, value=6e-6)}))
    assert [each.device.rate(NAME) for each in (one, other)] == [5e-6, 6e-6]
    one, other = analyze_together(on("a", **{"launch_torch-eager": SEEN}), a)
    assert [each.device.rate(NAME) for each in (one, other)] == [5e-6, 5e-6]


def test_a_cache_of_known_speed_is_not_held_against_one_of_unknown_speed() -> None:
    one, other = analyze_together(on("a"), on("b", cache_llc=None))
    # gelu reads and writes 0.4 MB each in 25 us: main memory needs 80, so that a cache served it on both.
    assert one.table.floor[2] == other.table.floor[2] == 0
    assert one.table.uncosted[2] == other.table.uncosted[2] == pytest.approx(25e-6)
    one, other = analyze_together(on("a"), on("b"))
    assert one.table.floor[2] == other.table.floor[2] == pytest.approx(20e-6)


def test_given_ceilings_are_merged_with_no_others() -> None:
    """The foreign copy is ten times as fast; another run measured 11 GB/s here, where the first one saw 10."""
    here = handmade.device()
    foreign = replace(handmade.device(dram_copy=100e9), ceilings_of="Elsewhere")
    faster = handmade.device(dram_copy=11e9)
    for order in ((here, foreign, faster), (faster, here, foreign), (foreign, faster, here)):
        best = best_ceilings(order)
        assert (best.rate("dram.copy"), best.ceilings_of) == (11e9, "")
    # Of two that were given the first by name; and beside a run of which nothing was measured those that there are.
    third = replace(handmade.device(dram_copy=200e9), ceilings_of="Nowhere")
    bare = replace(handmade.device(), ceilings={}, caches=())
    for order in ((third, foreign, bare), (bare, foreign, third)):
        assert best_ceilings(order).rate("dram.copy") == 100e9
    # Both runs are under the measured ones.
    profiles = [replace(handmade.profile(), device=device) for device in (here, foreign)]
    assert [run.device.rate("dram.copy") for run in analyze_together(*profiles)] == [10e9, 10e9]
    assert [profile.device.rate("dram.copy") for profile in on_common_ceilings(profiles)] == [10e9, 10e9]


@pytest.mark.parametrize("first", [True, False])
def test_a_range_of_one_run_is_one_of_both(first: bool) -> None:
    """Results whose places are recorded are a point, and without addresses they are a range that ends there.

    Of two runs of one work both get the lower end of that range, and neither loses the upper one.
    """
    device = replace(handmade.device(), kind="cuda")
    buffers = 1 + max(buffer for op in handmade.OPS for buffer in (*op.reads, *op.writes))
    point = handmade.profile(device=device, addresses=tuple(range(0, buffers * 2**25, 2**25)))
    both = (point, handmade.profile(device=device))
    alone = analyze_timed(point).table
    assert (alone.floor == alone.floor_high).all()
    for run in analyze_together(*(both if first else both[::-1])):
        np.testing.assert_array_equal(run.table.floor_high, alone.floor)
        assert run.table.floor.sum() < alone.floor.sum()
        assert "does not say where all results lie" in wording.ranges(run)


def test_what_two_traces_say_of_a_launch_at_most_holds_for_both() -> None:
    def device(value: float, high: float | None) -> Device:
        one = Ceiling(value=value, source="the trace", shortest=8e-6, high=high)
        return Device(name="d", kind="cuda", ceilings={NAME: one})

    found = best_ceilings([device(1e-6, 8e-6), device(7e-6, 7.5e-6)]).ceilings[NAME]
    assert (found.value, found.high) == (1e-6, 7.5e-6)
    assert best_ceilings([device(1e-6, 8e-6), device(7e-6, None)]).ceilings[NAME].high == 7e-6
