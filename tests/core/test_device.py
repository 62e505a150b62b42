"""Devices: ceilings measured twice, ridge points, and links."""

from __future__ import annotations

import msgspec
import pytest

from roofline.analysis.floors import cache_time, terms
from roofline.cli.devices import as_text
from roofline.core.cost import Cost
from roofline.core.device import Cache, Ceiling, Device
from roofline.core.schema import Precision, Signature


def device(**ceilings: float) -> Device:
    named = {name.replace("_", ".", 1): Ceiling(value=value, source="made up") for name, value in ceilings.items()}
    return Device(name="round", kind="cuda", ceilings=named)


def test_a_ceiling_seen_again_keeps_the_best_rate_and_spans_both() -> None:
    first = device(dram_read=60e9, launch_eager=3e-6)
    again = first.merge_measurements(
        {
            "dram.read": Ceiling(value=80e9, source="again", spread=0.1),
            "launch.eager": Ceiling(value=2e-6, source="again"),
            "dram.copy": Ceiling(value=50e9, source="again"),
        }
    )
    # 60 and 80 GB/s are 1 - 60/80 = 25 % apart, which is more than the second one's own 10 %
    assert again.ceilings["dram.read"].value == 80e9
    assert again.ceilings["dram.read"].drift == pytest.approx(0.25)
    assert again.spread("dram.read") == 0.1  # which is what an op must exceed to be above its ceiling
    assert again.uncertainty("dram.read") == pytest.approx(0.25)
    # of a time the least is the best: 2 of 3 µs are 1 - 2/3 apart
    assert again.ceilings["launch.eager"].value == 2e-6
    assert again.ceilings["launch.eager"].drift == pytest.approx(1 / 3)
    assert again.ceilings["dram.copy"].value == 50e9
    # and the other way round it is the same
    other = device(dram_read=80e9).merge_measurements({"dram.read": Ceiling(value=60e9, source="again")})
    assert other.ceilings["dram.read"].value == 80e9
    assert other.ceilings["dram.read"].drift == pytest.approx(0.25)


def test_ridge_point() -> None:
    # 1e12 FLOP/s over 1e11 byte/s: 10 FLOP/byte
    one = device(matrix_bf16=1e12, dram_read=1e11)
    assert one.ridge_point("bf16") == 10
    assert one.ridge_point("fp8") is None


def transfer(op_class: str) -> Signature:
    cost = Cost(bytes_read=8e6, bytes_written=8e6)
    return Signature(name="copy", kind="copy", op_class=op_class, shapes="", dtype="fp32", cost=cost, reads=(8e6,))  # type: ignore[arg-type]


def test_a_transfer_goes_over_the_link_and_not_over_the_memory() -> None:
    # 8 MB cross once, at the better of 25 and 20 GB/s: 320 µs; main memory would have said 16 MB / 1 TB/s = 16 µs
    one = device(link_h2d=25e9, link_d2h=20e9, dram_copy=1e12)
    found = terms(transfer("transfer"), one, "torch-eager", 1, 8e6, 8e6)
    assert found.memory == pytest.approx(320e-6)
    assert found.memory_ceiling == "link.h2d"


def test_a_cache_level_serves_no_more_than_it_holds() -> None:
    # 8 MB read and 8 written, all through l2 at 10 GB/s, what l2 does not hold through llc at 5. In place 8 MB are held
    # and moved twice.
    one = device(dram_copy=1e12, cache_l2=10e9, cache_llc=5e9)
    sizes = {"l2": 2e6, "llc": 64e6}
    one = msgspec.structs.replace(one, caches=tuple(Cache(level=x, size=sizes[x], source="") for x in sizes))
    op = transfer("pointwise")
    for size, inplace, seconds in ((16e6, False, 14e6 / 5e9), (8e6, True, 6 / 8 * 16e6 / 5e9)):
        found = terms(msgspec.structs.replace(op, inplace=inplace), one, "torch-eager", 1, 0.0, 0.0)
        assert found.memory == pytest.approx(seconds)
        assert found.memory_ceiling == "cache.llc"
        assert cache_time(size, 16e6, one) == (pytest.approx(seconds), "llc")
    assert cache_time(3e6, 3e6, one) == (pytest.approx(3e6 / 10e9), "l2")  # 1 MB from llc takes 0.2 ms, all in l2 0.3
    assert cache_time(1e6, 2e6, one) == (pytest.approx(2e6 / 10e9), "l2")  # in place within l2
    assert cache_time(1e6, 1e6, one.without_caches) == (0.0, "")


def test_without_a_link_a_transfer_is_uncosted() -> None:
    one = device(dram_copy=1e12, launch_eager=1e-6)
    found = terms(transfer("communication"), one, "eager", 1, 8e6, 8e6)
    assert (found.compute, found.memory, found.launch) == (None, None, None)
    assert found.missing == ("link.network",)


def test_a_ceiling_may_tell_what_lasts_and_older_ones_do_not() -> None:
    burst = Ceiling(value=800e12, source="s", sustained=620e12, clock=1.41e9)
    assert msgspec.json.decode(msgspec.json.encode(burst), type=Ceiling) == burst
    older = msgspec.json.decode(b'{"value": 8e14, "source": "s", "spread": 0.1}', type=Ceiling)
    assert older.sustained is None
    assert older.clock is None
    assert b"sustained" not in msgspec.json.encode(older)


def test_what_lasts_is_shown_beside_the_peaks() -> None:
    peaks = {
        "matrix.bf16": Ceiling(value=800e12, source="s", sustained=620e12, clock=1.41e9),
        "matrix.int8": Ceiling(value=1500e12, source="s", sustained=1200e12),
        "dram.copy": Ceiling(value=3e12, source="s"),
    }
    text = as_text(Device(name="round", kind="cuda", ceilings=peaks))
    assert "Sustained without a pause: matrix.bf16 620 TFLOP/s at 1410 MHz, matrix.int8 1.20 POP/s." in text
    assert "Sustained" not in as_text(device(dram_copy=1e12))


def test_devices_that_work_together_are_held_to_the_sum_of_their_ceilings() -> None:
    one = device(matrix_fp32=100e12, launch_xla=2e-6, dram_read=1e12)
    one = msgspec.structs.replace(one, caches=(Cache(level="llc", size=50e6, source="made up"),), memory=80e9)
    four = one.together(4)
    work = Signature(
        name="dot",
        kind="dot",
        op_class="contraction",
        shapes="",
        dtype="fp32",
        cost=Cost(flops=400e9, useful_flops=400e9, bytes_read=4e9, bytes_written=0.0, quality="exact"),
        precision=Precision(inputs="fp32", arithmetic="fp32", accumulate="fp32", output="fp32", evidence=""),
    )
    # 100 GFLOP each at 100 TFLOP/s, a gigabyte each at 1 TB/s, and a launch each of 2 µs at the same time.
    found = terms(work, four, "xla", 4, 4e9, 0.0)
    assert (found.compute, found.memory, found.launch) == pytest.approx((1e-3, 1e-3, 2e-6))
    assert (four.name, four.llc, four.memory, four.number) == ("4 x round", 200e6, 320e9, 4)
    assert (four.single_name, four.single_memory) == ("round", 80e9)
    assert (one.single_name, one.single_memory) == ("round", 80e9)
    assert four.together(4) is four
    assert four.together(2) == one.together(2)
    assert four.together(1) == one
    assert one.together(1) is one
    # A processor that a program divides into devices is one.
    cpu = msgspec.structs.replace(one, kind="cpu")
    assert cpu.together(4) is cpu
