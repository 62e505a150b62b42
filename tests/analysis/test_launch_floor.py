"""How much of a trace's shortest kernel was launching."""

from __future__ import annotations

import handmade
import numpy as np
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.analysis.launch_floor import seen_device
from roofline.core.device import Ceiling
from roofline.core.schema import Imported, Profile

NAME = "launch.torch-eager"


def trace(ceiling: Ceiling, **times: int) -> Profile:
    """The step made by hand as a trace's: gelu works for 80 us at the ceilings, layer_norm for 0.8 us.

    times: own time of layer_norm and of gelu [us]; other ops are as they are, 400 us and more.
    """
    profile = handmade.profile(imported=Imported(files=("trace.json",)))
    ops = list(profile.ops)
    for row, name in ((2, "gelu"), (6, "layer_norm")):
        ops[row] = replace(ops[row], own_ns=(1000 * times[name],) * 3, overlap_ns=0)
    device = profile.device
    return replace(profile, ops=tuple(ops), device=replace(device, ceilings={**device.ceilings, NAME: ceiling}))


def shortest(microseconds: float, **more: float) -> Ceiling:
    return Ceiling(value=microseconds * 1e-6, source="the trace", shortest=microseconds * 1e-6, spread=0.0, **more)


def test_work_of_the_shortest_kernel_was_no_launching() -> None:
    # gelu is the shortest: 170 us, of which 0.8 MB / 10 GB/s = 80 us at half of the roof are 160.
    ceiling = seen_device(trace(shortest(170), gelu=170, layer_norm=200)).ceilings[NAME]
    assert (ceiling.value, ceiling.high) == pytest.approx((10e-6, 170e-6))
    # Of 90 us all may have been work.
    ceiling = seen_device(trace(shortest(90), gelu=90, layer_norm=200)).ceilings[NAME]
    assert (ceiling.value, ceiling.high) == pytest.approx((1e-9, 90e-6))
    # Of a clock in ticks the upper end is the tick's.
    ceiling = seen_device(trace(shortest(170, high=180e-6), gelu=170, layer_norm=200)).ceilings[NAME]
    assert (ceiling.value, ceiling.high) == pytest.approx((10e-6, 180e-6))


def test_of_several_shortest_ones_the_one_with_the_least_work_tells() -> None:
    # layer_norm moves 8 kB: 0.8 us at 10 GB/s, 1.6 at half of it.
    ceiling = seen_device(trace(shortest(90), gelu=90, layer_norm=90)).ceilings[NAME]
    assert (ceiling.value, ceiling.high) == pytest.approx((88.4e-6, 90e-6))
    # One that takes longer than the shortest hundredth of the trace, up to 90 / (1 - 0.1) = 100 us, is none of them.
    spread = replace(shortest(90), spread=0.1)
    assert seen_device(trace(spread, gelu=90, layer_norm=99)).rate(NAME) == pytest.approx(88.4e-6)
    assert seen_device(trace(spread, gelu=90, layer_norm=101)).rate(NAME) == pytest.approx(1e-9)


def test_what_is_known_of_a_device_stays() -> None:
    known = Ceiling(value=5e-6, source="measured", shortest=90e-6)
    assert seen_device(trace(known, gelu=90, layer_norm=200)).ceilings[NAME] == known
    # So does what no op alone shows: the shortest kernel was one of several of its op.
    assert seen_device(trace(shortest(3), gelu=90, layer_norm=200)).ceilings[NAME] == shortest(3)
    bare = handmade.profile()
    assert seen_device(bare) == bare.device


def test_an_op_that_worked_for_most_of_its_time_is_not_said_to_be_launched() -> None:
    # 90 us of gelu: its floor is 20 us from the cache, 80 us from main memory, or 90 us if it was but launched.
    profile = trace(shortest(90), gelu=90, layer_norm=200)
    table = analyze(profile).table
    assert (table.floor[2], table.floor_reach[2]) == pytest.approx((20e-6, 90e-6))
    assert np.isclose(table.floor[6], 0.2e-6)  # layer_norm: 8 kB from the cache; nothing is known of launching
