"""Other kernels on another device: what is carried over of a library's, and how wide that makes the range."""

from __future__ import annotations

import math
from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

from roofline import devices
from roofline.analysis.analysis import analyze
from roofline.core import shipped
from roofline.core.device import Device
from roofline.core.schema import Op, load
from roofline.projection.devices import find_change
from roofline.projection.kernels import Fitted, Spread
from roofline.projection.project import WhatIf, project
from roofline.projection.sides import find_sides

US = 1e-6
NONE = Spread((0.0, 0.0, 0.0), (1, 1, 1))
#: Matmuls reach half of the limits of one GPU, a quarter of those of the other; a fifth of the difference is carried.
FITTED = Fitted(
    {"cuda": {"contraction": math.log(0.5)}, "rocm": {"contraction": math.log(0.25)}},
    0.2,
    {"processor": NONE, "cpu": NONE, "gpu": Spread((0.1, 0.1, 0.1), (5, 2, 0))},
)
NO_SPREAD = Fitted(FITTED.typical, FITTED.carried, dict.fromkeys(FITTED.spreads, NONE))


def gpu(kind: str, name: str, **rates: float) -> Device:
    """The round device as a GPU whose latency does not show."""
    device = handmade.device(**rates)
    kept = {key: c for key, c in device.ceilings.items() if key.partition(".")[0] in ("matrix", "dram")}
    kept = {key: replace(c, spread=0.0) for key, c in kept.items()}
    kept["latency.kernel"] = handmade.ceiling(1e-12)
    return replace(device, kind=kind, name=name, ceilings=kept, caches=())


def carried(there: Device, *ops: Op, fitted: Fitted = FITTED) -> WhatIf:
    return project(analyze(handmade.profile(device=gpu("cuda", "A"), ops=ops)), there, fitted=fitted)


def matmul(microseconds: int) -> Op:
    """A matmul of 2000 µs at the ceiling of the round device."""
    return replace(handmade.OPS[1], own_ns=(microseconds * 1000,) * 3, overlap_ns=0)


def test_part_of_what_is_not_typical_of_a_library_is_carried_over() -> None:
    # 4000 µs are half of the limit, as is typical: a quarter of the other's 1000 µs (twice the rate) is 4000 µs, too.
    there = gpu("rocm", "B", matrix_fp32=200e9)
    assert carried(there, matmul(4000)).total.projected == pytest.approx(4000 * US)
    # 40 000 µs are a tenth of what is typical: 10 ** -0.2 of it there.
    assert carried(there, matmul(40_000)).total.projected == pytest.approx(4000 * 10**0.2 * US)
    # The same kernels on the same processor: all is carried, half of 40 000 µs.
    same = gpu("cuda", "A", matrix_fp32=200e9)
    assert carried(same, matmul(40_000)).total.projected == pytest.approx(20_000 * US)


def test_under_a_datasheet_nothing_is_typical() -> None:
    there = gpu("rocm", "B", matrix_fp32=200e9)
    printed = {name: replace(c, spread=None) for name, c in there.ceilings.items()}
    assert carried(replace(there, ceilings=printed), matmul(40_000)).total.projected == pytest.approx(20_000 * US)


def test_own_code_carries_what_it_reaches() -> None:
    # GELU moves 0.8 MB in 800 µs, a tenth of the limit here; at half the rate twice that.
    op = replace(handmade.OPS[2], own_ns=(800_000,) * 3, overlap_ns=0)
    assert carried(gpu("rocm", "B", dram_copy=5e9), op).total.projected == pytest.approx(1600 * US)


def test_the_efficiency_is_that_of_all_calls_of_an_op() -> None:
    # A first call of 7000 µs that a library tuned, and one of 1000: together 4000 µs on average, as is typical.
    found = carried(gpu("rocm", "B", matrix_fp32=200e9), matmul(7000), matmul(1000))
    assert found.total.projected == pytest.approx(8000 * US)


def test_the_range_holds_none_and_all_of_it() -> None:
    # 40 000 µs here: 4000 if nothing of it is carried, 40 000 if all is, each tenth of the draws a tenth of the way.
    found = carried(gpu("rocm", "B", matrix_fp32=200e9), matmul(40_000), fitted=NO_SPREAD)
    low, high = found.total.interval
    assert low == pytest.approx(4000 * 10**0.05 * US, rel=0.05)
    assert high == pytest.approx(4000 * 10**0.95 * US, rel=0.05)


def test_the_range_is_as_wide_as_the_steps_are_few_that_tell_of_a_code() -> None:
    # Nothing is in doubt but other kernels, by Student's t: 2.92 deviations of 0.1 as two steps tell of matmuls, 2.015
    # as five tell of the framework's own code; none tells of attention, as little as one would: 6.31.
    there = gpu("rocm", "B", matrix_fp32=200e9)
    gelu = replace(handmade.OPS[2], own_ns=(800_000,) * 3, overlap_ns=0)
    attention = [replace(one, op_class="attention") for one in handmade.SIGNATURES]
    here = handmade.profile(device=gpu("cuda", "A"), ops=(gelu,), signatures=tuple(attention))
    for found, seconds, deviations in (
        (carried(there, matmul(4000)), 4000 * US, 0.292),
        (carried(there, gelu), 800 * US, 0.2015),
        (project(analyze(here), there, fitted=FITTED), 800 * US, 0.631),
    ):
        low, high = found.total.interval
        assert math.log(found.kernels) == pytest.approx(deviations, rel=0.1)
        assert (math.log(seconds / low), math.log(high / seconds)) == pytest.approx((deviations,) * 2, rel=0.15)


def test_changes_of_device() -> None:
    here = handmade.device()
    faster = handmade.device(dram_copy=20e9)
    assert find_change(here, here, None) is None
    assert find_change(here, faster, None) == "processor"
    smaller = replace(faster, caches=tuple(replace(cache, size=2e6) for cache in faster.caches))
    assert find_change(here, smaller, None) == find_change(here, replace(faster, name="Other"), None) == "cpu"
    # So it is where no caches count, as of ceilings that nobody measured.
    sides = find_sides(analyze(handmade.profile(device=here)), smaller)
    assert (sides.caches, sides.change) == (False, "cpu")
    # A GPU's datasheet goes by another name than its driver: they are the same by the sheet.
    a, b = gpu("cuda", "A"), gpu("cuda", "B", dram_copy=20e9)
    assert (find_change(a, b, None), find_change(a, b, b)) == ("gpu", "processor")
    assert find_change(a, replace(b, kind="rocm"), None) == "gpu"
    assert find_change(a, here, None) == find_change(here, a, None) == "cpu"


def test_from_a_cpu_to_a_gpu() -> None:
    """No pair of a CPU and a GPU is fitted: one step that ran on both, FP32 on either, as docs/guides tell it."""
    here, there = (
        analyze(load(shipped.paths()[name]))
        for name in ("bert-torch-infer-b1-s128-amd-epyc-1", "h100/bert-torch-infer-b1-fp32")
    )
    total = project(here, devices.load("h100-sxm")).total
    guide = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "slow-model.md").read_text(encoding="utf-8")
    low, high = (f"{seconds * 1e3:.2f}" for seconds in total.interval)
    assert f"here and {total.projected * 1e3:.2f} ms on\nNVIDIA H100 SXM (range {low}–{high} ms)" in guide
    assert f"On an H100 they took [{there.busy * 1e3:.2f} ms]" in guide
    assert total.interval[0] < there.busy < total.interval[1]
