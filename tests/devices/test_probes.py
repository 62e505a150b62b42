"""The probes themselves, with budgets of a few milliseconds: that they measure what they say, not how fast."""

from __future__ import annotations

import time

import pytest

from roofline.core.device import DRAM
from roofline.devices import cpu

torch = pytest.importorskip("torch")

from roofline.devices import probes_cpu, sampling

pytestmark = pytest.mark.xdist_group("timing")

HOW = {"conditions": "1 thread", "date": "2026-01-01"}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        yield
    torch.set_num_threads(before)


def test_all_probes_of_a_cpu_have_names_of_their_own():
    names = [name for probe in probes_cpu.probes(cpu.detect(), 1, False, "2026-01-01") for name in probe.names]
    assert len(names) == len(set(names))
    families = {name.partition(".")[0] for name in names}
    assert families == {"matrix", "vector", "function", "dram", "cache", "launch"}


@pytest.mark.parametrize("precision", probes_cpu.PRECISIONS)
def test_products_multiply(precision):
    # 64x64x64: 2 x 64 x 64 x 64 = 524,288 FLOP
    candidates = probes_cpu._products(precision, ((64, 64, 64),))
    assert {candidate.work for candidate in candidates} == {524_288.0}
    for candidate in candidates:
        assert candidate.run().shape == (64, 64)


def test_convolutions_are_products():
    # 128 channels to 128 at 4 x 4 positions of 16 images: 2 x 128 x 128 x 256 = 8,388,608 FLOP
    first = probes_cpu._convolutions("fp32", full=False)[0]
    assert first.work == 8_388_608.0
    assert first.run().shape == (16, 128, 4, 4)


def test_vector_rate_is_the_products():
    wanted = ("matrix.fp32", "vector.fp32")
    found = probes_cpu._matrix(wanted, precision="fp32", seconds=0.02, full=False, **HOW).ceilings
    assert found["vector.fp32"].value == found["matrix.fp32"].value
    assert "runs on the vector units" in found["vector.fp32"].source


@pytest.mark.parametrize("name", sorted(probes_cpu._functions()))
def test_each_function_op_evaluates_every_element(name):
    x, out = torch.rand(1024), torch.full((1024,), -9.0)
    for op in probes_cpu._functions()[name].values():
        result = op(x, out)
        assert result.numel() == 1024
        assert torch.isfinite(result).all()


def test_memory_patterns():
    begin = time.perf_counter()
    found = probes_cpu._dram(("dram.read", "dram.inplace"), last=None, seconds=0.01, full=False, **HOW).ceilings
    took = time.perf_counter() - begin
    assert set(found) == {"dram.read", "dram.inplace"}
    # However slow the machine is: an array was passed over once at least.
    assert all(ceiling.value * took > probes_cpu.array_size(None, 1e9, full=False) for ceiling in found.values())


def test_each_way_to_read_memory_reads_the_whole_array_once(monkeypatch):
    # An array of 0.5 in a million places: its sum is half a million, its largest 0.5; the product of its rows with 0.5
    # is 0.25 a place, added up over the rows or over the columns.
    raced = []

    def race(candidates, seconds):
        raced.extend(candidates)
        return sampling.fastest_first(candidates, 0.0)

    monkeypatch.setattr(probes_cpu, "fastest_first", race)
    monkeypatch.setattr(probes_cpu, "array_size", lambda last, available, full: 4 * 2**20)
    probes_cpu._dram(("dram.read",), last=None, seconds=0.0, full=False, **HOW)
    assert {one.label: one.run().sum().item() for one in raced} == {
        "sum": 2**19,
        "amax": 0.5,
        "mv": 2**18,
        "mv, transposed": 2**18,
    }
    assert {one.work for one in raced} == {4.0 * 2**20}


def test_the_usable_size_is_that_of_reads_and_writes(monkeypatch):
    """Reads hold their rate up to 24 MiB, updates up to 12: the size is the updates', the bandwidth the best of all."""
    mib = 2**20
    ends = {"sum": 24 * mib, "mul_": 12 * mib, "add_": 24 * mib}
    rates = {"sum": 100e9, "mul_": 200e9, "add_": 150e9}

    def race(candidates, seconds, rounds):
        sizes = {"sum": 1.0, "mul_": 2.0, "add_": 1.5}
        return [
            sampling.Best(c.label, rates[c.label] if c.work / sizes[c.label] <= ends[c.label] else 30e9, 0.0, 1)
            for c in candidates
        ]

    monkeypatch.setattr(probes_cpu, "fastest_first", race)
    levels = (cpu.CacheLevel(2, mib // 2, 1), cpu.CacheLevel(3, 32 * mib, 1))
    processor = cpu.Cpu(name="x", cores=1, cpus=(0,), caches=levels)
    finding = probes_cpu._cache(("cache.llc",), cpu=processor, bests={}, seconds=0.0, **HOW)
    last = finding.caches[-1]
    assert (last.level, last.size) == ("llc", 12 * mib)
    assert "reads and writes" in last.source
    assert "(24 MiB by reads alone)" in last.source
    assert finding.ceilings["cache.llc"].value == 200e9
    assert "mul_" in finding.ceilings["cache.llc"].source


def test_launch_is_a_time():
    begin = time.perf_counter()
    found = probes_cpu._launch(("launch.torch-eager",), calls=20, **HOW).ceilings["launch.torch-eager"]
    # The profiler tells whole nanoseconds; the least of 20 calls is no more than their mean.
    assert 1e-9 <= found.value < (time.perf_counter() - begin) / 20
    assert "20 calls" in found.source


def test_the_bandwidth_beside_a_profile_leaves_the_threads_as_they_were():
    before = torch.get_num_threads()
    found = probes_cpu.quick_bandwidth(before + 1, seconds=0.02)
    assert set(found) == {f"dram.{pattern}" for pattern in DRAM}
    assert torch.get_num_threads() == before
    assert f"{before + 1} threads" in found["dram.read"].source
