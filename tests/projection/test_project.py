"""A step carried to another device. The step and the round device are those of handmade.py.

All devices of one name and caches are one processor: the same kernels run on them.
"""

from __future__ import annotations

import math

import handmade
import numpy as np
import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.core.cost import Cost, unknown
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.projection.kernels import FITTED
from roofline.projection.project import WhatIf, project

US = 1e-6

#: The factor that nine of ten draws of other kernels lie within: 2.132 deviations, by Student's t of 4 steps.
OWN, MATMUL = (math.exp(2.132 * deviation) for deviation in FITTED.spreads["processor"].deviations[:2])

#: What mystery adds to the step: its work is not known, so it is never carried. Of its 367 µs 100 ran beside softmax,
#: which is carried and counts whole there.
MYSTERY = 267 * US
#: The other ops of the step: 10 700 µs in which any op ran, less that.
CARRIED = (10700 - 267) * US


def carried(there: Device, profile: Profile | None = None, sheet: Device | None = None) -> WhatIf:
    return project(analyze(handmade.profile() if profile is None else profile), there, sheet)


def without(*families: str) -> Device:
    """The round device without some families of ceilings."""
    device = handmade.device()
    kept = {name: c for name, c in device.ceilings.items() if name.partition(".")[0] not in families}
    return replace(device, ceilings=kept)


def started(own: float, before: float, after: float, launch: float = 5) -> float:
    """[us] An op of 5 us of launch floor whose work takes `before` us at the ceilings here and `after` there."""
    return own * (after + launch) / (before + 5)


def uncertain(device: Device, spread: float) -> Device:
    """The device with measured ceilings."""
    return replace(device, ceilings={name: replace(c, spread=spread) for name, c in device.ceilings.items()})


def test_the_same_device_gives_the_measured_wall() -> None:
    found = carried(handmade.device())
    assert found.seconds + found.total.not_carried == pytest.approx(12.5e-3, rel=1e-12)
    assert found.total.not_carried == pytest.approx(MYSTERY)
    assert found.speedup == pytest.approx(1, rel=1e-12)
    assert (found.rebound, found.change, found.kernels) == (0, None, 1)
    assert (found.missing, found.left_out, found.kept, found.sheet) == ((), (), (), False)
    # Of the step's times only steps that differ by 1 % are left to vary.
    assert 12.233e-3 * 0.97 < found.interval[0] < 12.233e-3 < found.interval[1] < 12.233e-3 * 1.03


def test_the_launch_floor_of_a_trace_makes_no_other_device() -> None:
    """A trace's shortest kernel is a floor of the profile's device that its datasheet has not: on a GPU nothing is
    carried by it, and its kernels are those that ran. A CPU's launch floor is what its small ops take."""
    for kind, alike in (("cuda", True), ("cpu", False)):
        here = replace(handmade.device(), kind=kind)
        sheet = replace(here, ceilings={**here.ceilings, "launch.torch-eager": handmade.ceiling(9e-6)})
        found = carried(sheet, handmade.profile(device=here))
        assert (found.kernels == 1) == alike
    here = replace(handmade.device(), kind="cuda")
    found = carried(replace(here, ceilings=without("launch").ceilings), handmade.profile(device=here))
    assert found.kernels == 1
    assert found.speedup == pytest.approx(1)


def test_everything_twice_as_fast_leaves_the_gap() -> None:
    rates = {name: c.value for name, c in handmade.device().ceilings.items()}
    twice = {name: value / 2 if name.startswith("launch") else value * 2 for name, value in rates.items()}
    found = carried(handmade.device(**twice))
    assert found.total.measured == pytest.approx(CARRIED)
    assert found.total.projected == pytest.approx(CARRIED / 2)
    assert found.gap == pytest.approx(1800 * US)
    assert found.seconds == pytest.approx(CARRIED / 2 + 1800 * US)
    assert found.speedup == pytest.approx((12500 * US - MYSTERY) / (CARRIED / 2 + 1800 * US))
    # Everything from main memory, without the launch of layer_norm.
    assert found.total.floor == pytest.approx((400 + 2000 + 80 + 2000 + 800 + 0.8 + 2800) * US / 2)


def test_faster_memory_helps_what_memory_binds() -> None:
    # Everything is taken to be main memory's: of embedding (400 of 400 µs), gelu (80, which the cache did in 25),
    # softmax (800 of 2000), layer_norm (0.8 of 8) and adamw (2800 of 3000) half of the work
    # is left, and all of the 5 µs in which a launch gets going.
    found = carried(handmade.device(dram_copy=20e9))
    assert found.groups["matmul"].projected == pytest.approx(5000 * US)
    assert found.groups["optimizer"].projected == pytest.approx(started(3000, 2800, 1400) * US)
    assert found.groups["pointwise"].projected == pytest.approx((started(400, 400, 200) + started(25, 80, 40)) * US)
    assert found.groups["normalisation"].projected == pytest.approx(
        (started(2000, 800, 400) + started(8, 0.8, 0.4)) * US
    )
    assert found.rebound == 0


def test_what_the_device_takes_to_get_going_no_ceiling_shortens() -> None:
    # 10 times the memory bandwidth: an op of 5 µs of work and 5 µs of launch floor that takes 20 µs, twice both, is
    # left with 2 * (0.5 + 5) µs; one of 5000 µs of work with little more than a tenth.
    small = replace(
        handmade.SIGNATURES[4], cost=Cost(bytes_read=25e3, bytes_written=25e3), reads=(25e3,), writes=(25e3,)
    )
    large = replace(
        handmade.SIGNATURES[4], cost=Cost(bytes_read=25e6, bytes_written=25e6), reads=(25e6,), writes=(25e6,)
    )
    op = replace(handmade.OPS[4], overlap_ns=0, signature=0)
    ops = (replace(op, own_ns=(20_000,) * 3), replace(op, signature=1, own_ns=(10_010_000,) * 3))
    device, fast = without("cache", "function"), without("cache", "function")
    device, fast = replace(device, caches=()), replace(fast, caches=())
    fast = replace(fast, ceilings={**fast.ceilings, "dram.copy": handmade.ceiling(100e9)})
    found = carried(fast, handmade.profile(device=device, signatures=(small, large), ops=ops))
    assert found.total.projected == pytest.approx((2 * 5.5 + 2 * 505) * US)
    assert found.starting == pytest.approx((10 + 10) * US)


def test_where_another_roof_binds_its_term_counts() -> None:
    # One addmm: 2000 µs under the compute roof and 5 to get going, of 2500. It touches 4.804 MB: 480.4 µs. With matrix
    # work 100 times as fast 20 µs of it are left.
    profile = handmade.profile(ops=(handmade.OPS[1],))
    found = carried(handmade.device(matrix_fp32=100e11), profile)
    there = started(2500, 2000, 480.4)
    assert found.total.projected == pytest.approx(there * US)
    assert found.rebound == pytest.approx(2500 * US)
    # Other kernels may be off by MATMUL. Steps vary by 1 %.
    assert found.total.interval == pytest.approx((there / MATMUL * US, there * MATMUL * US), rel=0.02)
    assert found.kernels == pytest.approx(MATMUL, rel=0.02)


def test_launch_floors_are_the_hosts() -> None:
    found = carried(without("launch"))
    assert found.kept == ("launch.torch-eager",)
    # The column of the ceilings alone has no launches, so none is missing in it.
    assert found.missing == ()
    # Everything stays as it is; by the ceilings alone layer_norm is 8 kB from memory, 0.8 µs.
    assert found.groups["normalisation"].projected == pytest.approx((2000 + 8) * US)
    assert found.groups["normalisation"].floor == pytest.approx((800 + 0.8) * US)
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
    assert found.total.projected == pytest.approx(125 * US)


def test_a_precision_without_a_ceiling_is_named_and_not_carried() -> None:
    found = carried(without("matrix"))
    products, mystery = found.unknown
    assert (products.reason, products.ops, products.longest) == ("no ceiling matrix.fp32 there", 2, "aten::addmm")
    assert products.seconds == pytest.approx(5000 * US)
    assert (mystery.reason, mystery.ops, mystery.longest) == ("work not known", 1, "mylib::mystery")
    assert found.groups["matmul"].measured == found.groups["matmul"].projected == found.groups["matmul"].floor == 0
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
    assert found.groups["communication"].projected == pytest.approx(started(400, 2000, 200) * US)


def test_what_is_known_of_a_cache_changes_nothing() -> None:
    # One assumption on all devices: else one whose cache has a figure looks slower or faster than one that has none.
    known = carried(handmade.device(cache_llc=400e9, dram_copy=20e9))
    unknown = carried(
        replace(without("cache"), ceilings={**without("cache").ceilings, "dram.copy": handmade.ceiling(20e9)})
    )
    assert known.groups == unknown.groups


def test_a_rate_that_only_the_other_device_has_is_left_out_on_both() -> None:
    # erf at 1 G/s would be 100 µs of the 100 k that gelu needs, if only that device names it.
    profile = handmade.profile(device=without("function"), ops=(handmade.OPS[2],))
    found = carried(handmade.device(function_erf=1e9), profile)
    assert found.left_out == ("function.erf", "function.exp", "function.sqrt")
    assert found.total.projected == pytest.approx(25 * US)


def test_work_without_a_ceiling_there_is_not_free() -> None:
    # A device of which only the products are known: nobody knows what streaming takes there, though launches get going.
    with pytest.raises(InputError, match=r"No op of the profile can be projected .*no ceiling dram\.read there"):
        carried(replace(without("dram", "cache"), caches=()))


def test_a_copy_that_launches_no_kernel_gets_going_all_the_same() -> None:
    # 4 bytes over a link: 2 µs, and as much on a device whose link is half as fast.
    read = replace(handmade.SIGNATURES[0], op_class="transfer", cost=Cost(bytes_read=4, bytes_written=4))
    op = replace(handmade.OPS[0], launches=0, own_ns=(2000,) * 3)
    profile = handmade.profile(
        device=handmade.device(link_d2h=2e9), signatures=(read, *handmade.SIGNATURES[1:]), ops=(op,)
    )
    assert carried(handmade.device(link_d2h=1e9), profile).total.projected == pytest.approx(2 * US, rel=1e-2)


def test_a_datasheet_is_held_against_a_datasheet() -> None:
    # 100 GFLOP/s measured of the 200 of the datasheet; a device with 400 in its datasheet is twice as fast, not four
    # times.
    here = uncertain(handmade.device(), 0.01)
    profile = handmade.profile(device=here, ops=(handmade.OPS[1],))
    there = handmade.device(matrix_fp32=400e9)
    alike = carried(there, profile, sheet=handmade.device(matrix_fp32=200e9))
    # 100 of 200 reached here: 1000 µs of 2500 by the sheet, 500 there.
    assert alike.total.projected == pytest.approx(started(2500, 1000, 500) * US)
    assert not alike.sheet
    measured = uncertain(handmade.device(matrix_fp32=200e9), 0.01)
    both = carried(measured, profile, sheet=handmade.device(matrix_fp32=200e9))
    assert both.total.projected == pytest.approx(started(2500, 2000, 1000) * US)
    apart = carried(there, profile)
    assert apart.total.projected == pytest.approx(started(2500, 2000, 500) * US)
    # Nobody knows what of that datasheet can be reached: down to half of it.
    assert apart.sheet
    assert 1.8 < apart.total.interval[1] / apart.total.projected < 2.06 * MATMUL


def test_what_was_reached_is_held_against_what_was_reached() -> None:
    # Here the sheet has 200 GFLOP/s and says that 150 were reached, there it has 400 and 210: 210 / 150 as fast, not
    # twice.
    def sheet(value: float, reached: float) -> Device:
        device = handmade.device(matrix_fp32=value)
        told = replace(device.ceilings["matrix.fp32"], reached=reached, reached_by="a benchmark")
        return replace(device, ceilings={**device.ceilings, "matrix.fp32": told})

    # Of 200 MFLOP in 2500 µs more was reached here (80 GFLOP/s) than is reached by others, and 80 / 60 times that would
    # be less than the 2000 µs of the datasheet there: no op gets below a ceiling that it does not beat here.
    fast = handmade.profile(device=sheet(100e9, 60e9), ops=(handmade.OPS[1],))
    found = carried(sheet(100e9, 80e9), fast)
    assert started(2500, 200e6 / 60e9 / US, 200e6 / 80e9 / US) < 2000
    assert (found.total.projected, found.total.floor) == (pytest.approx(2000 * US), pytest.approx(2000 * US))
    here, there = sheet(200e9, 150e9), sheet(400e9, 210e9)
    profile = handmade.profile(device=here, ops=(handmade.OPS[1],))
    work = 200e6 / 150e9 / US, 200e6 / 210e9 / US
    assert carried(there, profile).total.projected == pytest.approx(started(2500, *work) * US)
    # A profile that was saved before that was known has it from its datasheet.
    old = handmade.profile(device=handmade.device(matrix_fp32=200e9), ops=(handmade.OPS[1],))
    assert carried(there, old, sheet=here).total.projected == pytest.approx(started(2500, *work) * US)
    assert carried(there, old).total.projected == pytest.approx(started(2500, 1000, 500) * US)


def test_a_gpu_gets_going_by_its_latency() -> None:
    # A kernel starts up in twice the time of the shortest one: 4 µs here, 6 there; 2000 µs of work stay.
    def gpu(latency: float | None) -> Device:
        device = replace(handmade.device(), kind="cuda")
        told = {} if latency is None else {"latency.kernel": handmade.ceiling(latency)}
        return replace(device, ceilings={**device.ceilings, **told})

    profile = handmade.profile(device=gpu(2e-6), ops=(handmade.OPS[1],))
    assert carried(gpu(3e-6), profile).total.projected == pytest.approx(2500 * 2006 / 2004 * US)
    # What one of them does not know is the other's.
    assert carried(gpu(None), profile).total.projected == pytest.approx(2500 * US)
    assert carried(gpu(None), profile).starting == pytest.approx(2500 * 4 / 2004 * US)
    neither = handmade.profile(device=gpu(None), ops=(handmade.OPS[1],))
    assert carried(gpu(None), neither).starting == pytest.approx(2500 * 3.6 / 2003.6 * US)


def test_unknown_work_goes_with_its_group_where_most_of_it_is_known() -> None:
    # Two addmm at twice the rate; a third one of unknown work changes like them, but not where it is most of the group.
    vague = replace(handmade.SIGNATURES[1], cost=unknown("no formula"))
    number = len(handmade.SIGNATURES)
    third = replace(handmade.OPS[1], signature=number, own_ns=(1_000_000,) * 3)
    profile = handmade.profile(signatures=(*handmade.SIGNATURES, vague), ops=(handmade.OPS[1], handmade.OPS[3], third))
    found = carried(handmade.device(matrix_fp32=200e9), profile)
    assert found.total.projected == pytest.approx(started(6000, 2000, 1000) * US)
    assert (found.total.assumed, found.total.not_carried) == (pytest.approx(1000 * US), 0)
    assert [(one.reason, one.assumed) for one in found.unknown] == [("work not known", True)]
    long = replace(third, own_ns=(5_100_000,) * 3)
    found = carried(handmade.device(matrix_fp32=200e9), replace(profile, ops=(handmade.OPS[1], handmade.OPS[3], long)))
    assert (found.total.assumed, found.total.not_carried) == (0, pytest.approx(5100 * US))


def test_ceilings_that_may_be_lower_widen_the_range() -> None:
    profile = handmade.profile(device=uncertain(handmade.device(), 0.0), ops=(handmade.OPS[1],))
    sharp = carried(uncertain(handmade.device(matrix_fp32=200e9), 0.0), profile)
    vague = carried(uncertain(handmade.device(matrix_fp32=200e9), 0.2), profile)
    there = started(2500, 2000, 1000) * US
    assert sharp.total.projected == vague.total.projected == pytest.approx(there)
    assert sharp.total.interval[1] < 1.02 * MATMUL * there
    # Drawn together with other kernels, 1 / 0.8 = 1.25 adds less than both at their worst.
    assert 1.05 < vague.total.interval[1] / sharp.total.interval[1] < 1.25


def test_no_vague_ceiling_widens_what_the_device_takes_to_get_going() -> None:
    # 0.1 of 5.1 us is work at the memory bandwidth there, which may be as low as half: 2 % more. Of the other op 100 of
    # 105 us are, which may become 205 us.
    def width(work: float) -> float:
        moved = Cost(bytes_read=work / 2, bytes_written=work / 2)
        signature = replace(handmade.SIGNATURES[4], cost=moved, reads=(work / 2,), writes=(work / 2,))
        op = replace(handmade.OPS[4], overlap_ns=0, signature=0, own_ns=(1_000_000,) * 3)
        here = replace(without("cache", "function"), caches=())
        here = replace(here, ceilings={n: replace(c, spread=0.0) for n, c in here.ceilings.items()})
        vague = replace(handmade.ceiling(20e9), spread=0.5)
        there = replace(here, ceilings={**here.ceilings, "dram.copy": vague})
        found = carried(there, handmade.profile(device=here, signatures=(signature,), ops=(op,)))
        return found.total.interval[1] / found.total.projected / OWN

    assert width(2e3) == pytest.approx(1.0, abs=0.05)
    assert width(2e6) > 1.3


def test_a_ceiling_that_is_the_same_on_both_sides_cancels() -> None:
    device = uncertain(handmade.device(), 0.3)
    found = carried(device, handmade.profile(device=device))
    assert found.interval[1] < 12.233e-3 * 1.03


@pytest.mark.parametrize(
    ("profile", "there", "sentence"),
    [
        (
            handmade.profile(device=Device(name="x", kind="cpu", ceilings={})),
            handmade.device(),
            "The ceilings of the profile's device are not known",
        ),
        (handmade.profile(), Device(name="x", kind="cpu", ceilings={}), "The other device has no ceilings"),
        (handmade.profile(), handmade.device(dram_copy=0.0), "'dram.copy' of the other device is not above 0"),
        (handmade.profile(), handmade.device(dram_copy=float("nan")), "'dram.copy' of the other device"),
        (handmade.profile(ops=()), handmade.device(), "No op of the profile can be projected .*: it has no ops"),
        (handmade.profile(ops=(handmade.OPS[5],)), handmade.device(), "can be projected .*: work not known"),
    ],
)
def test_what_cannot_be_carried_is_a_sentence(profile: Profile, there: Device, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        carried(there, profile)


def test_an_overlap_that_is_longer_than_some_steps_of_an_op() -> None:
    # 0, 0 and 600 µs, of which 150 µs on average ran beside another op: no draw of it takes less than no time.
    op = replace(handmade.OPS[1], own_ns=(0, 0, 600_000), overlap_ns=150_000)
    found = carried(handmade.device(), handmade.profile(ops=(op,)))
    assert found.total.projected == pytest.approx(50 * US)
    assert found.total.interval[0] == pytest.approx(50 * US)  # no less than its floor, were it not below that already


def able(device: Device) -> Device:
    """The device with what most ops need: of most random devices nothing can be carried."""
    return replace(device, ceilings={**handmade.device(matrix_bf16=200e9).ceilings, **device.ceilings})


@settings(max_examples=100)
@given(randomly.profiles())
def test_any_step_on_its_own_device_is_itself(profile: Profile) -> None:
    here = analyze(replace(profile, device=able(profile.device)))
    try:
        found = project(here, here.device)
    except InputError:
        return
    whole = max(here.wall, here.busy)
    assert found.seconds + found.total.not_carried == pytest.approx(here.wall, rel=1e-9, abs=1e-9 * whole)


@settings(max_examples=100)
@given(randomly.profiles(), st.booleans(), randomly.devices(), st.none() | randomly.devices())
def test_any_step_on_any_device(profile: Profile, poor: bool, there: Device, sheet: Device | None) -> None:
    here = analyze(profile if poor else replace(profile, device=able(profile.device)))
    try:
        found = project(here, there if poor else able(there), sheet)
    except InputError:
        return
    low, high = found.interval
    assert np.isfinite([low, high, found.seconds]).all()
    assert low <= found.seconds <= high
    assert found.total.projected == pytest.approx(sum(row.projected for row in found.groups.values()))
    assert found.total.ops == len(profile.ops)
    assert found.total.measured + found.total.not_carried == pytest.approx(here.busy, rel=1e-9, abs=1e-15)
    for assumed, seconds in ((False, found.total.not_carried), (True, found.total.assumed)):
        named = sum(one.seconds for one in found.unknown if one.assumed == assumed)
        assert named == pytest.approx(seconds, rel=1e-9, abs=1e-15)
    for row in found.groups.values():
        assert row.interval[0] <= row.projected <= row.interval[1]
