"""A step carried to another device. The step and the round device are those of handmade.py."""

from __future__ import annotations

import handmade
import numpy as np
import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.core.device import Device
from roofline.core.schema import Imported, Profile
from roofline.errors import InputError
from roofline.projection.carry import WhatIf, carry

US = 1e-6

#: What mystery adds to the step: its work is not known, so it is never carried.
MYSTERY = 317 * US
#: The other ops of the step, by share time.
CARRIED = (10700 - 317) * US


def carried(there: Device, profile: Profile | None = None, sheet: Device | None = None) -> WhatIf:
    return carry(analyze(handmade.profile() if profile is None else profile), there, sheet)


def without(*families: str) -> Device:
    """The round device without some families of ceilings."""
    device = handmade.device()
    kept = {name: c for name, c in device.ceilings.items() if name.partition(".")[0] not in families}
    return replace(device, ceilings=kept)


def uncertain(device: Device, spread: float) -> Device:
    """The device with measured ceilings."""
    return replace(device, ceilings={name: replace(c, spread=spread) for name, c in device.ceilings.items()})


def test_the_same_device_gives_the_measured_wall() -> None:
    found = carried(handmade.device())
    assert found.seconds + found.total.not_carried == pytest.approx(12.5e-3, rel=1e-12)
    assert found.total.not_carried == pytest.approx(MYSTERY)
    assert found.speedup == pytest.approx(1, rel=1e-12)
    assert found.rebound == found.doubtful == 0
    assert (found.missing, found.left_out, found.kept, found.caches, found.sheet) == ((), (), (), True, False)
    # Of the step's times only steps that differ by 1 % are left to vary.
    assert 12.183e-3 * 0.97 < found.interval[0] < 12.183e-3 < found.interval[1] < 12.183e-3 * 1.03


def test_everything_twice_as_fast_leaves_the_gap() -> None:
    rates = {name: c.value for name, c in handmade.device().ceilings.items()}
    twice = {name: value / 2 if name.startswith("launch") else value * 2 for name, value in rates.items()}
    found = carried(handmade.device(**twice))
    assert found.total.here == pytest.approx(CARRIED)
    assert found.total.there == pytest.approx(CARRIED / 2)
    assert found.gap == pytest.approx(1800 * US)
    assert found.seconds == pytest.approx(CARRIED / 2 + 1800 * US)
    assert found.speedup == pytest.approx((12500 * US - MYSTERY) / (CARRIED / 2 + 1800 * US))
    assert found.total.floor == pytest.approx(7725 * US / 2)


def test_faster_memory_helps_what_memory_binds() -> None:
    # Half of embedding (400), softmax (share 1950) and adamw (3000 µs): half of their traffic from memory (150, 350,
    # 1350 µs) is still more than all of it from the cache (100, 200, 700 µs) and their vector work. gelu comes from
    # the cache.
    found = carried(handmade.device(dram_copy=20e9))
    there = 400 / 2 + 2500 + 25 + 2500 + 1950 / 2 + 8 + 3000 / 2
    assert found.total.there == pytest.approx(there * US)
    assert found.groups["matmul"].there == pytest.approx(5000 * US)
    assert found.groups["optimizer"].there == pytest.approx(1500 * US)
    assert found.rebound == 0


def test_where_another_roof_binds_the_range_holds_what_is_not_known() -> None:
    # One addmm: 2000 µs under the compute roof, 80 % attained. Of what it touches the bias and the result stay in the
    # cache, so 4.4 MB come from memory: 440 µs. With matrix work 100 times as fast 20 µs of compute are left.
    profile = handmade.profile(ops=(handmade.OPS[1],))
    found = carried(handmade.device(matrix_fp32=100e11), profile)
    assert found.total.there == pytest.approx(440 / 0.8 * US)
    assert found.rebound == pytest.approx(2500 * US)
    # At least the memory roof attained whole; at most as far as here: 440 of 2500 µs. Steps vary by 1 %.
    assert found.total.interval == pytest.approx((440 * US, 2500 * US), rel=0.02)


def test_launch_floors_are_the_hosts() -> None:
    found = carried(without("launch"))
    assert found.kept == ("launch.torch-eager",)
    assert found.missing == ("launch.torch-eager",)
    # layer_norm stays as it is, 8 µs for a floor of one launch; by the ceilings alone it is 4 kB / 10 GB/s.
    assert found.groups["normalisation"].there == pytest.approx((1950 + 8) * US)
    assert found.groups["normalisation"].floor == pytest.approx((700 + 0.4) * US)
    assert found.seconds == pytest.approx(12500 * US - MYSTERY)


def test_what_one_side_has_is_left_out_on_both() -> None:
    # With functions so slow that erf binds gelu (100 k / 1 G/s = 100 µs of 125), a device that names none would else
    # take its 20 µs of cache traffic for 80 % of 125 µs.
    slow = handmade.device(function_erf=1e9)
    op = replace(handmade.OPS[2], own_ns=(125_000,) * 3)
    profile = handmade.profile(device=slow, ops=(op,))
    found = carried(without("function"), profile)
    assert found.left_out == ("function.erf", "function.exp", "function.sqrt")
    assert found.missing == ("function.erf",)
    assert found.total.there == pytest.approx(125 * US)


def test_a_precision_without_a_ceiling_is_named_and_not_carried() -> None:
    found = carried(without("matrix"))
    products, mystery = found.unknown
    assert (products.reason, products.ops, products.most) == ("no ceiling matrix.fp32 there", 2, "aten::addmm")
    assert products.seconds == pytest.approx(5000 * US)
    assert (mystery.reason, mystery.ops, mystery.most) == ("work not known", 1, "mylib::mystery")
    assert found.groups["matmul"].here == found.groups["matmul"].there == found.groups["matmul"].floor == 0
    assert found.seconds + found.total.not_carried == pytest.approx(12500 * US)


def test_a_precision_that_is_not_known() -> None:
    vague = replace(handmade.SIGNATURES[1], precision=replace(handmade.FP32, arithmetic=None))
    signatures = (handmade.SIGNATURES[0], vague, *handmade.SIGNATURES[2:])
    found = carried(handmade.device(), handmade.profile(signatures=signatures))
    assert found.unknown[0].reason == "precision of a product not known"


def test_a_collective_needs_a_link_on_both_sides() -> None:
    moved = replace(handmade.SIGNATURES[0], op_class="communication")
    profile = handmade.profile(signatures=(moved, *handmade.SIGNATURES[1:]), device=handmade.device(link_network=1e9))
    assert "no ceiling link.network there" in {one.reason for one in carried(handmade.device(), profile).unknown}
    # 2 MB cross once: 2000 µs at 1 GB/s of 400 measured, ten times as fast there.
    found = carried(handmade.device(link_network=10e9), profile)
    assert found.groups["communication"].there == pytest.approx(40 * US)


def test_a_cache_whose_speed_one_side_does_not_know_is_left_out_on_both() -> None:
    found = carried(replace(without("cache"), caches=handmade.device().caches))
    assert not found.caches
    # gelu moves 0.8 MB here and there: by main memory alone it is as fast, whatever its cache does.
    assert found.groups["pointwise"].there == pytest.approx((400 + 25) * US)
    # By the cache it may be anything from its vector work (8 of 80 µs) to all of 80 µs where 20 were attained.
    low, high = found.groups["pointwise"].interval
    assert low < (400 + 25) * US < high
    assert high > (400 + 4 * 25) * US * 0.98


def test_a_datasheet_is_held_against_a_datasheet() -> None:
    # 100 GFLOP/s measured of the 200 of the datasheet; a device with 400 in its datasheet is twice as fast, not four
    # times.
    here = uncertain(handmade.device(), 0.01)
    profile = handmade.profile(device=here, ops=(handmade.OPS[1],))
    there = handmade.device(matrix_fp32=400e9)
    alike = carried(there, profile, sheet=handmade.device(matrix_fp32=200e9))
    assert alike.total.there == pytest.approx(1250 * US)
    assert not alike.sheet
    measured = uncertain(handmade.device(matrix_fp32=200e9), 0.01)
    assert carried(measured, profile, sheet=handmade.device(matrix_fp32=200e9)).total.there == pytest.approx(1250 * US)
    apart = carried(there, profile)
    assert apart.total.there == pytest.approx(625 * US)
    # Nobody knows what of that datasheet can be reached: down to half of it.
    assert apart.sheet
    assert apart.total.interval[1] == pytest.approx(1250 * US, rel=0.06)
    assert apart.total.interval[1] > 1.9 * 625 * US


def test_ceilings_that_may_be_lower_widen_the_range() -> None:
    profile = handmade.profile(device=uncertain(handmade.device(), 0.0), ops=(handmade.OPS[1],))
    sharp = carried(uncertain(handmade.device(matrix_fp32=200e9), 0.0), profile)
    vague = carried(uncertain(handmade.device(matrix_fp32=200e9), 0.2), profile)
    assert sharp.total.there == vague.total.there == pytest.approx(1250 * US)
    assert sharp.total.interval[1] < 1.02 * 1250 * US
    assert 1.2 * 1250 * US < vague.total.interval[1] < 1.27 * 1250 * US  # 1 / 0.8 = 1.25, and the steps


def test_a_ceiling_that_is_the_same_on_both_sides_cancels() -> None:
    device = uncertain(handmade.device(), 0.3)
    found = carried(device, handmade.profile(device=device))
    assert found.interval[1] < 12.183e-3 * 1.03


def test_without_a_history_of_buffers_the_range_goes_from_warm_to_cold() -> None:
    # A trace: of softmax's 4 + 4 MB at least 3 + 3 come from memory (600 µs of 2000), at most 8 (800 µs). Where the
    # cache holds 3 MB it is 1 + 1 to 8: from a third of its time to all of it.
    other = replace(handmade.device(), caches=(replace(handmade.device().caches[0], size=3e6),))
    op = replace(handmade.OPS[4], overlap_ns=0)
    profile = handmade.profile(ops=(op,), imported=Imported(buffers=False))
    found = carried(other, profile)
    assert found.total.there == pytest.approx(2000 * US)
    # The cache takes over at 8 MB / 40 GB/s: 200 µs, as much as 2 MB / 10 GB/s.
    assert found.total.interval == pytest.approx((2000 / 3 * US, 2000 * US), rel=0.02)


def test_without_a_launch_floor_a_loss_may_be_the_launchs() -> None:
    # softmax reaches 700 of 2000 µs: 1300 µs are not the memory's, and no launch floor tells what they are. Twice the
    # bandwidth gives 1000 µs if they shrink along, 350 + 1300 if they do not.
    bare = without("launch")
    profile = handmade.profile(device=bare, ops=(replace(handmade.OPS[4], overlap_ns=0),))
    faster = replace(bare, ceilings={**bare.ceilings, "dram.copy": handmade.ceiling(20e9)})
    found = carried(faster, profile)
    assert found.total.there == pytest.approx(1000 * US)
    assert found.doubtful == pytest.approx(2000 * US)
    assert found.total.interval[1] == pytest.approx(1650 * US, rel=0.02)
    # An op that is near its roof is not in doubt.
    near = handmade.profile(device=bare, ops=(handmade.OPS[1],))
    assert carried(faster, near).doubtful == 0


@pytest.mark.parametrize(
    ("profile", "there", "sentence"),
    [
        (handmade.profile(profiled=None), handmade.device(), "only counted, .* without --count-only"),
        (handmade.without_steps(), handmade.device(), "holds no profiled step, so its ops have no time to carry"),
        (handmade.profile(device=Device(name="x", kind="cpu", ceilings={})), handmade.device(), "No ceilings of the"),
        (handmade.profile(), Device(name="x", kind="cpu", ceilings={}), "The other device has no ceilings"),
        (handmade.profile(), handmade.device(dram_copy=0.0), "'dram.copy' of the other device is not above 0"),
        (handmade.profile(), handmade.device(dram_copy=float("nan")), "'dram.copy' of the other device"),
        (handmade.profile(ops=()), handmade.device(), "No op of the profile can be carried .*: it has no ops"),
        (handmade.profile(ops=(handmade.OPS[5],)), handmade.device(), "can be carried .*: work not known"),
    ],
)
def test_what_cannot_be_carried_is_a_sentence(profile: Profile, there: Device, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        carried(there, profile)


def test_an_overlap_that_is_longer_than_some_steps_of_an_op() -> None:
    # 0, 0 and 600 µs, of which 150 µs on average ran beside another op: no draw of it takes less than no time.
    op = replace(handmade.OPS[1], own_ns=(0, 0, 600_000), overlap_ns=150_000)
    found = carried(handmade.device(), handmade.profile(ops=(op,)))
    assert found.total.there == pytest.approx(50 * US)
    assert found.total.interval[0] == 0


def able(device: Device) -> Device:
    """The device with what most ops need: of most random devices nothing can be carried."""
    return replace(device, ceilings={**handmade.device(matrix_bf16=200e9).ceilings, **device.ceilings})


@settings(max_examples=100)
@given(randomly.profiles())
def test_any_step_on_its_own_device_is_itself(profile: Profile) -> None:
    here = analyze(replace(profile, device=able(profile.device)))
    try:
        found = carry(here, here.device)
    except InputError:
        return
    whole = max(here.wall, here.busy)
    assert found.seconds + found.total.not_carried == pytest.approx(here.wall, rel=1e-9, abs=1e-9 * whole)


@settings(max_examples=100)
@given(randomly.profiles(), st.booleans(), randomly.devices(), st.none() | randomly.devices())
def test_any_step_on_any_device(profile: Profile, poor: bool, there: Device, sheet: Device | None) -> None:
    here = analyze(profile if poor else replace(profile, device=able(profile.device)))
    try:
        found = carry(here, there if poor else able(there), sheet)
    except InputError:
        return
    low, high = found.interval
    assert np.isfinite([low, high, found.seconds]).all()
    assert low <= found.seconds <= high
    assert found.total.there == pytest.approx(sum(row.there for row in found.groups.values()))
    assert found.total.ops == len(profile.ops)
    assert found.total.here + found.total.not_carried == pytest.approx(here.busy, rel=1e-9, abs=1e-15)
    assert sum(one.seconds for one in found.unknown) == pytest.approx(found.total.not_carried, rel=1e-9, abs=1e-15)
    for row in found.groups.values():
        assert row.interval[0] <= row.there <= row.interval[1]
