"""The TOML files: they load, every number has a source, and devices are recognised by what drivers call them."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest

from roofline import devices, plugins
from roofline.core.device import DRAM
from roofline.errors import InputError

GIB = 2**30


@pytest.mark.parametrize("name", devices.names())
def test_every_number_has_a_source(name):
    device = devices.load(name)
    assert device.kind in ("cuda", "rocm")
    assert device.ceilings
    for ceiling in device.ceilings.values():
        assert ceiling.value > 0
        assert len(ceiling.source) > 20  # a citation, not the key of one
        assert "from memory" not in ceiling.source
        assert ceiling.date
    for cache in device.caches:
        assert cache.size > 0
        assert len(cache.source) > 20


@pytest.mark.parametrize("name", devices.names())
def test_every_source_is_used(name):
    text = (plugins.folder("roofline.devices") / f"{name}.toml").read_text(encoding="utf-8")
    sheet = tomllib.loads(text)
    device = devices.load(name)
    used = {c.source for c in device.ceilings.values()} | {c.source.rpartition(" (")[0] for c in device.caches}
    used |= {c.reached_by for c in device.ceilings.values() if c.reached is not None}
    assert set(sheet["sources"].values()) == used


def test_a_datasheet_says_how_it_is_known_that_a_cache_is_of_use():
    # Passes of reads and writes ended at 33 MiB on an H100; reads alone at 35.5 on the one with PCI Express; of an L4's
    # cache only the size is known.
    written, read, whole = (devices.load(name).caches[-1].source for name in ("h100-sxm", "h100-pcie", "l4"))
    assert written.endswith("(usable by reads and writes)")
    assert read.endswith("(usable by reads alone; with writes it was not measured)")
    assert whole.endswith("(all of it is assumed to be usable, which was not measured)")


@pytest.mark.parametrize("name", devices.names())
def test_nothing_was_reached_above_its_ceiling(name):
    # A ceiling is the best rate seen: a card that boosts above the clock of its datasheet has what it reached.
    above = {
        key: (c.reached, c.value)
        for key, c in devices.load(name).ceilings.items()
        if c.reached is not None and c.reached > c.value
    }
    assert not above


@pytest.mark.parametrize("name", devices.names())
def test_peaks_are_dense_and_ordered(name):
    device = devices.load(name)
    narrower = [device.rate(f"matrix.{p}") for p in ("fp32", "tf32", "bf16", "fp8") if device.rate(f"matrix.{p}")]
    assert narrower == sorted(narrower)
    # A dense 8-bit product is at most four times a 16-bit one (Ada with FP32 accumulate); with sparsity it
    # would be eight.
    if device.rate("matrix.int8") and device.rate("matrix.fp16"):
        assert device.rate("matrix.int8") <= 4 * device.rate("matrix.fp16")


@pytest.mark.parametrize(
    ("driver_name", "memory", "name"),
    [
        ("NVIDIA H100 80GB HBM3", 79.6 * GIB, "h100-sxm"),
        ("NVIDIA H100 PCIe", 79.6 * GIB, "h100-pcie"),
        ("NVIDIA A100-SXM4-80GB", 80 * GIB, "a100-sxm"),
        ("NVIDIA A100 80GB PCIe", 80 * GIB, "a100-pcie"),
        ("NVIDIA A100-SXM4-40GB", 40 * GIB, "a100-40gb"),
        ("A100-SXM4-40GB", 39.4 * GIB, "a100-40gb"),
        ("NVIDIA A100-PCIE-40GB", 40 * GIB, "a100-40gb"),
        ("Tesla V100-SXM2-32GB", 32 * GIB, "v100-sxm2"),
        ("Tesla V100-SXM2-16GB", 16 * GIB, "v100-sxm2"),
        ("NVIDIA H200", 140 * GIB, "h200"),
        ("NVIDIA H20", 95.6 * GIB, "h20"),
        ("NVIDIA B200", 179 * 1e9, "b200"),
        ("NVIDIA L4", 22.5 * GIB, "l4"),
        ("NVIDIA L40S", 45 * GIB, "l40s"),
        ("Tesla T4", 15 * GIB, "t4"),
        ("NVIDIA A10", 22.5 * GIB, "a10"),
        ("NVIDIA GeForce RTX 4090", 24 * GIB, "rtx-4090"),
        ("nvidia geforce rtx 3090", 24 * GIB, "rtx-3090"),
        ("NVIDIA A100-PG509-200", 42_505_273_344, "a100-40gb"),
        ("NVIDIA GH200 480GB", 94.5 * GIB, "gh200-96gb"),
        ("NVIDIA GH200 144G HBM3e", 140 * GIB, "gh200-144gb"),
        ("NVIDIA GB200", 184 * GIB, "gb200"),
        ("NVIDIA GB300", 276 * GIB, "gb300"),
        ("NVIDIA B300 SXM6 AC", 268 * GIB, "b300"),
        ("NVIDIA GeForce RTX 2080 Ti", 10.75 * GIB, "rtx-2080-ti"),
        ("NVIDIA GeForce RTX 3080", 9.8 * GIB, "rtx-3080"),
        ("NVIDIA GeForce RTX 5090", 31.4 * GIB, "rtx-5090"),
        ("NVIDIA RTX A6000", 47.5 * GIB, "rtx-a6000"),
        ("NVIDIA L40", 44.4 * GIB, "l40"),
    ],
)
def test_recognises_gpus(driver_name, memory, name):
    found = devices.datasheet(driver_name, memory, "cuda")
    assert found is not None
    assert found.name == devices.load(name).name
    assert found.memory == memory  # what this card has, not what the sheet says


@pytest.mark.parametrize(
    ("driver_name", "memory"),
    [
        ("NVIDIA H100 NVL", 94 * GIB),  # another memory, another bandwidth
        ("NVIDIA A10G", 22.5 * GIB),  # not an A10
        ("NVIDIA GeForce RTX 4090 D", 24 * GIB),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 16 * GIB),
        ("NVIDIA GeForce RTX 3090 Ti", 24 * GIB),
        ("Tesla V100-PCIE-32GB", 32 * GIB),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20 * GIB),
        ("NVIDIA A100-SXM4-40GB", 20 * GIB),  # a slice that keeps the name
        ("NVIDIA T400", 4 * GIB),
        ("NVIDIA A100-PG509-200", 80 * GIB),
        ("NVIDIA GeForce RTX 3080", 12 * GIB),
        ("NVIDIA GeForce RTX 3080 Ti", 12 * GIB),
        ("NVIDIA GeForce RTX 2080", 8 * GIB),
        ("NVIDIA GeForce RTX 5090 D", 32 * GIB),
        ("NVIDIA RTX 6000 Ada Generation", 48 * GIB),
        ("NVIDIA GH200 480GB", None),  # of which there are two
        ("", 0.0),
    ],
)
def test_does_not_take_one_gpu_for_another(driver_name, memory):
    assert devices.datasheet(driver_name, memory, "cuda") is None


@pytest.mark.parametrize(("card", "memory"), [("mi325x", 256 * GIB), ("mi355x", 288 * GIB)])
def test_recognises_gpus_of_amd(card, memory):
    found = devices.datasheet(f"AMD Instinct {card.upper()}", memory, "rocm")
    assert found is not None
    assert found.name == devices.load(card).name


def test_a_name_of_several_cards_lists_them():
    assert devices.fitting("NVIDIA GH200 480GB") == ("gh200-144gb", "gh200-96gb")
    assert devices.fitting("NVIDIA GH200 480GB", 95 * GIB) == ("gh200-96gb",)
    for name in ("gh200", "NVIDIA GH200 480GB"):
        with pytest.raises(InputError, match="no single card: give gh200-144gb or gh200-96gb"):
            devices.load(name)
    assert devices.load("NVIDIA A100-SXM4-80GB") == devices.load("a100-sxm")


def test_narrow_types_are_as_fast_as_their_units():
    # FLOP a clock of one compute unit, FP8 8192: half with 16 bits, twice with 4
    mi355x = devices.load("mi355x")
    assert [mi355x.rate(f"matrix.{p}") / (256 * 2.4e9) for p in ("bf16", "fp8", "fp4")] == pytest.approx(
        [4096, 8192, 16384], rel=1e-4
    )
    # 680 tensor cores at 2.407 GHz, multiply-adds a clock: instructions with scales by block have no half rate for FP32
    # accumulation, so 8 bits are four times as fast as the 64 of 16 bits
    rtx = devices.load("rtx-5090")
    assert [rtx.rate(f"matrix.{p}") / (680 * 2 * 2.407e9) for p in ("int8", "fp8", "fp4")] == pytest.approx(
        [256, 256, 512], rel=1e-3
    )


def test_geforce_cards_accumulate_in_fp32_at_half_the_rate():
    # Multiply-adds a clock of a tensor core with FP16 accumulation: 64 for Turing (544 at 1.635 GHz), 128 for Ampere
    # (272 at 1.71, 336 at 1.8 GHz); half with FP32 accumulation, which the workstation's card does at the full rate
    turing, ampere, workstation = (
        devices.load(name).rate("matrix.fp16") for name in ("rtx-2080-ti", "rtx-3080", "rtx-a6000")
    )
    assert turing / (544 * 2 * 1.635e9) == pytest.approx(32, rel=1e-3)
    assert ampere / (272 * 2 * 1.71e9) == pytest.approx(64, rel=1e-3)
    assert workstation / (336 * 2 * 1.8e9) == pytest.approx(128, rel=1e-3)


def test_amd_is_recognised_among_rocm_devices_only():
    found = devices.datasheet("AMD Instinct MI300X", 192 * GIB, "rocm")
    assert found is not None
    assert found.rate("matrix.bf16") == 1307.4e12
    assert devices.datasheet("AMD Instinct MI300X", 192 * GIB, "cuda") is None


def test_a100_variants_differ_in_bandwidth_alone():
    small = devices.datasheet("NVIDIA A100-SXM4-40GB", 40 * GIB)
    large = devices.datasheet("NVIDIA A100-SXM4-80GB", 80 * GIB)
    assert small.rate("dram.read") == 1555e9
    assert large.rate("dram.read") == 2039e9
    assert small.family("matrix") == large.family("matrix")


@pytest.mark.parametrize(
    ("name", "whole"), [("h100-sxm", 50), ("h100-pcie", 50), ("h200", 60), ("a100-sxm", 40), ("a100-40gb", 40)]
)
def test_of_a_measured_cache_what_keeps_its_speed_is_usable(name, whole):
    # whole: as torch.cuda.get_device_properties prints it [MiB]; what two halves of a cache both keep is there twice
    device = devices.load(name)
    assert 0.6 * whole * 2**20 < device.llc < whole * 2**20
    # A last-level cache is two to three times as fast as the memory behind it.
    assert 1.9 < device.rate("cache.llc") / device.rate("dram.read") < 3.6


def test_a_cache_of_unknown_speed_serves_nothing():
    assert devices.load("l4").serves is None
    assert devices.load("b200").serves is None
    assert devices.load("h100-sxm").serves == devices.load("h100-sxm").llc
    # Measured, and less than the 5120 bytes per clock of the hardware at 1410 MHz; of the V100 its 2048 at 1530
    assert 0.7 < devices.load("a100-sxm").rate("cache.llc") / (5120 * 1.41e9) < 1
    assert devices.load("v100-sxm2").rate("cache.llc") == pytest.approx(2048 * 1.53e9, rel=1e-3)
    # Below what the hardware has: 32 channels of 128 bytes per clock at 1.7 GHz a die, 128 of 64 bytes at 2.1 GHz
    assert 0.7 < devices.load("mi250x").rate("cache.llc") / (32 * 128 * 1.7e9) < 1
    assert 0.6 < devices.load("mi300x").rate("cache.llc") / (128 * 64 * 2.1e9) < 1


def test_one_bandwidth_serves_every_pattern():
    device = devices.load("h100-sxm")
    assert device.family("dram") == dict.fromkeys(DRAM, 3350e9)


def test_ridge_points():
    # H100 SXM: 989.5 TFLOP/s / 3.35 TB/s = 295.4 FLOP/byte in bf16, 67 / 3.35 = 20 in fp32
    h100 = devices.load("h100-sxm")
    assert h100.ridge_point("bf16") == pytest.approx(989.5 / 3.35)
    assert h100.ridge_point("bf16") == pytest.approx(295.373, abs=1e-3)
    assert h100.ridge_point("fp32") == pytest.approx(20.0)
    # A100: 312 / 1.555 = 200.6 with 40 GB, 312 / 2.039 = 153.0 with 80 GB
    assert devices.load("a100-40gb").ridge_point("bf16") == pytest.approx(200.643, abs=1e-3)
    assert devices.load("a100-sxm").ridge_point("bf16") == pytest.approx(153.016, abs=1e-3)
    # V100 has no bf16: no ridge point, not 0
    assert devices.load("v100").ridge_point("bf16") is None
    # below the ridge the memory is the roof, above it the peak
    assert h100.bandwidth == pytest.approx(3.35e12)
    assert h100.rate("matrix.bf16") == pytest.approx(989.5e12)


def test_names_aliases_and_spellings():
    assert devices.load("H100-SXM") == devices.load("h100_sxm")
    aliases = [alias for name in devices.names() for alias in (name, *devices.load(name).aliases)]
    assert len(aliases) == len(set(aliases))


def test_unknown_name_lists_the_alternatives():
    with pytest.raises(InputError, match=r"no device called 'h1000'; there are: a10, .*v100-sxm2"):
        devices.load("h1000")


def test_a_file_of_the_users_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "Mine"\nkind = "cuda"\ndate = "2026-01-01"\nmatch = []\nmemory_range = [0, 1]\n[sources]\n'
        '[matrix]\nfp32 = { value = 1e12, source = "my own measurement" }\n'
        '[dram]\nany = { value = 2e11, source = "my own measurement" }\n'
        'copy = { value = 1e11, source = "my own measurement" }\n',
        encoding="utf-8",
    )
    mine = devices.load(str(path))
    assert mine.rate("dram.read") == 2e11
    assert mine.rate("dram.copy") == 1e11  # the pattern's own figure before the general one
    assert mine.ridge_point("fp32") == pytest.approx(5.0)  # 1e12 / 2e11


EIGHT_LINES = """name = "My GPU"
kind = "cuda"
memory = 96e9
matrix.bf16 = 148e12
matrix.fp8 = 296e12
vector.fp32 = 44e12
dram.any = 4.0e12
caches = [{ level = "llc", size = 60e6 }]
"""


def test_a_file_of_eight_lines(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "imports.md").read_text(encoding="utf-8")
    assert textwrap.indent(EIGHT_LINES, "    ") in page
    path = tmp_path / "mine.toml"
    path.write_text(EIGHT_LINES, encoding="utf-8")
    mine = devices.load(str(path))
    assert (mine.name, mine.kind, mine.memory, mine.llc) == ("My GPU", "cuda", 96e9, 60e6)
    assert mine.ridge_point("bf16") == pytest.approx(37)  # 148 / 4
    assert mine.ceilings["matrix.fp8"].source == "the device file of My GPU, which names no source"
    assert mine.ceilings["matrix.fp8"].date is None


@pytest.mark.parametrize(
    "figure", ["matrix.bf17", "vector.float32", "dram.reed", "link.pear", "cache.lcc", "latency.x"]
)
def test_a_figure_that_nothing_looks_up_is_refused(tmp_path, figure):
    path = tmp_path / "mine.toml"
    path.write_text(f"{EIGHT_LINES}{figure} = 1e12\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"mine\.toml: there is no figure {figure}; .*a-device-of-your-own"):
        devices.load(str(path))


def test_a_broken_file_is_told_in_one_sentence(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text('name = "Broken"\nspeed = 3\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"broken\.toml is not a device file"):
        devices.load(str(path))
    with pytest.raises(InputError, match="no file"):
        devices.load(str(tmp_path / "missing.toml"))
