"""Ops that ran side by side, on another device. Kernels on a GPU whose latency is so short that it does not show."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.schema import Op, Signature
from roofline.projection.project import WhatIf, project

US = 1e-6
#: A product of 100 MFLOP (1000 µs at 100 GFLOP/s), an addition that moves 4 MB (400 µs at 10 GB/s), a collective.
PRODUCT = replace(handmade.SIGNATURES[1], cost=Cost(flops=100e6, model_flops=100e6, useful_flops=100e6))
ADDITION = replace(handmade.SIGNATURES[4], cost=Cost(bytes_read=2e6, bytes_written=2e6), reads=(2e6,), writes=(2e6,))
COLLECTIVE = replace(ADDITION, op_class="communication")


def gpu(**rates: float) -> Device:
    """The round device as a GPU: products, main memory and a latency."""
    device = handmade.device(**rates)
    kept = {name: c for name, c in device.ceilings.items() if name.partition(".")[0] in ("matrix", "dram")}
    kept["latency.kernel"] = handmade.ceiling(1e-12)
    return replace(device, kind="cuda", ceilings=kept, caches=())


def op(signature: int, own: int, start: int, overlap: int) -> Op:
    return replace(handmade.op(signature, 0, 0, own, start, (), (), overlap), own_ns=(own * 1000,) * 3)


def carried(there: Device, signatures: tuple[Signature, ...], *ops: Op) -> WhatIf:
    return project(analyze(handmade.profile(device=gpu(), signatures=signatures, ops=ops)), there)


def test_a_short_op_stays_hidden_behind_a_long_one() -> None:
    # 800 µs of memory traffic beside 2000 µs of product: the step has 2000 µs of both, and each has half of what they
    # share. At half the matrix rate the product takes 4000 µs and the addition 800, still behind it.
    step = (op(0, 2000, 100, 400), op(1, 800, 500, 400))
    found = carried(gpu(matrix_fp32=50e9), (PRODUCT, ADDITION), *step)
    assert found.total.measured == pytest.approx(2000 * US)
    assert found.total.projected == pytest.approx(4000 * US)
    assert found.groups["matmul"].projected == pytest.approx(3600 * US)
    assert found.hidden == pytest.approx(800 * US)
    # Ten times the matrix rate: the product is the shorter one there, and all of it is hidden behind the addition. By
    # the shares of here the step took 160 + 400 µs, less than either device would.
    found = carried(gpu(matrix_fp32=1000e9), (PRODUCT, ADDITION), *step)
    assert found.total.projected == pytest.approx(800 * US)
    # Both five times as fast change alike, overlap and all.
    found = carried(gpu(matrix_fp32=500e9, dram_copy=50e9), (PRODUCT, ADDITION), *step)
    assert found.total.projected == pytest.approx(400 * US)


def test_an_op_hides_no_more_than_it_lasts() -> None:
    # Two additions of 800 µs behind a product of 2000: 600 µs each, three times slower, would be 4800 behind it.
    step = (op(0, 2000, 100, 800), op(1, 800, 200, 400), op(1, 800, 1200, 400))
    found = carried(gpu(dram_copy=10e9 / 3), (PRODUCT, ADDITION), *step)
    assert found.total.projected == pytest.approx(4800 * US)


def test_no_op_attains_more_for_being_shared() -> None:
    # A product at its ceiling here, 1000 µs, shares half of its time. Half the rate: 2000 µs, of which the addition of
    # 1000 µs, unchanged, hides itself; its share of here, 500 µs, against its floor of 2000 would have said 1000.
    found = carried(gpu(matrix_fp32=50e9), (PRODUCT, ADDITION), op(0, 1000, 100, 500), op(1, 1000, 100, 500))
    assert found.total.projected == pytest.approx(2000 * US)
    # By the ceilings the product takes 2000 µs. The addition hides a quarter (500 µs) of it and half of its own 400.
    assert found.total.floor == pytest.approx((1500 + 200) * US)
    assert found.interval[0] >= found.total.floor


def test_two_ops_of_one_roof_cannot_both_be_at_it() -> None:
    # Two additions of 400 µs at the ceiling, side by side for 1000 µs: 800 µs is the least that the device needs.
    found = carried(gpu(), (PRODUCT, ADDITION), op(1, 1000, 100, 500), op(1, 1000, 100, 500))
    assert (found.total.projected, found.total.floor) == (pytest.approx(1000 * US), pytest.approx(800 * US))


def test_an_op_beside_one_that_is_not_carried_counts_whole() -> None:
    # A product of 2000 µs over 600 of the 700 µs of a collective for which there is no link. At half the rate 4000 µs;
    # only the 100 µs that the collective ran alone are in neither sum.
    step = (op(0, 2000, 100, 300), op(1, 700, 1500, 300))
    found = carried(gpu(matrix_fp32=50e9), (PRODUCT, COLLECTIVE), *step)
    assert (found.total.measured, found.total.projected) == (pytest.approx(2000 * US), pytest.approx(4000 * US))
    (left,) = found.unknown
    assert left.seconds == found.total.not_carried == pytest.approx(100 * US)
    assert left.hidden == pytest.approx(600 * US)
    assert found.seconds + found.total.not_carried == pytest.approx(found.gap + 4100 * US)
    # A third op beside both: 600 µs of three, each with a third. The collective's 200 go to the two that are carried.
    step = (op(0, 2000, 100, 400), op(2, 600, 1500, 400), op(1, 700, 1500, 400))
    found = carried(gpu(), (PRODUCT, COLLECTIVE, ADDITION), *step)
    assert found.total.measured == found.total.projected == pytest.approx(2000 * US)
    assert found.total.not_carried == pytest.approx(100 * US)


def test_without_starts_the_same_share_stays_hidden() -> None:
    step = (op(0, 2000, 0, 400), op(1, 800, 0, 400))
    found = carried(gpu(matrix_fp32=50e9), (PRODUCT, ADDITION), *step)
    assert found.total.projected == pytest.approx((1600 * 2 + 400) * US)
    assert carried(gpu(), (PRODUCT, ADDITION), *step).total.projected == pytest.approx(2000 * US)


def test_a_step_with_overlap_takes_its_own_wall_on_its_own_device() -> None:
    # An overlap that the starts do not bear out, of which pairs can tell only how it is divided.
    step = (op(0, 2000, 100, 900), op(1, 800, 500, 390), op(1, 900, 600, 500), op(1, 700, 1900, 350))
    found = carried(gpu(), (PRODUCT, COLLECTIVE, ADDITION), *step)
    assert found.seconds + found.total.not_carried == pytest.approx(found.here.wall, rel=1e-12)
