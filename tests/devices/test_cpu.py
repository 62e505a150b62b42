"""The CPU in use, and what is known of processors that are not here."""

from __future__ import annotations

import subprocess
import sys

import pytest

from roofline.devices import cpu
from roofline.devices.cpu import CacheLevel, Cpu
from roofline.devices.probes_cpu import array_size, working_sets

MIB = 2**20


def test_the_cpu_in_use():
    found = cpu.detect()
    assert found.name
    assert 1 <= found.cores <= len(found.cpus)
    assert found.cpus == cpu.affinity()
    assert found.memory is None or found.memory > 1e8
    assert all(level.size > 0 and level.instances > 0 for level in found.caches)
    assert [level.level for level in found.caches] == sorted(level.level for level in found.caches)


def test_theoretical_peak():
    # 2 cores x 3 GHz x (512 / 32 = 16 lanes) x 2 FLOP x 2 units = 384 GFLOP/s; fp64 has half the lanes
    known = Cpu(name="x", cores=2, cpus=(0, 1, 2, 3), clock=3e9, vector_bits=512, fma_units=2)
    assert known.peak(32) == 384e9
    assert known.peak(64) == 192e9
    assert known.peak(32, threads=1) == 192e9
    assert known.peak(32, threads=4) == 384e9  # a second thread on a core has no units of its own


@pytest.mark.parametrize("missing", ["clock", "vector_bits", "fma_units"])
def test_no_peak_where_something_is_unknown(missing):
    figures = {"clock": 3e9, "vector_bits": 512, "fma_units": 2} | {missing: None}
    assert Cpu(name="x", cores=2, cpus=(0, 1), **figures).peak(32) is None


@pytest.mark.parametrize(
    ("flags", "bits"),
    [
        ({"avx2", "avx512f"}, 512),
        ({"sse2", "avx", "avx2"}, 256),
        ({"asimd"}, 128),
        ({"asimd", "sve"}, None),  # SVE's width is not told
        ({"sse2"}, None),
        (set(), None),
    ],
)
def test_vector_width(flags, bits):
    assert cpu.vector_bits(frozenset(flags)) == bits


@pytest.mark.parametrize(
    ("vendor", "family", "model", "bits", "units"),
    [
        ("AuthenticAMD", 0x17, 0x01, 256, 1),  # Zen: two of 128 bits
        ("AuthenticAMD", 0x17, 0x31, 256, 2),  # Zen 2
        ("AuthenticAMD", 0x19, 0x01, 256, 2),  # Zen 3
        ("AuthenticAMD", 0x19, 0x11, 512, 1),  # Zen 4: 512 bits in two halves
        ("AuthenticAMD", 0x1A, 0x02, 512, 2),  # Zen 5 server
        ("AuthenticAMD", 0x1A, 0x24, 512, None),  # mobile Zen 5: not known here
        ("GenuineIntel", 6, 79, 256, 2),  # Broadwell server
        ("GenuineIntel", 6, 85, 512, None),  # Skylake server: one or two, by model
        ("ARM", None, None, 128, None),
        ("", 6, 79, 256, None),
    ],
)
def test_fma_units_are_known_or_none(vendor, family, model, bits, units):
    assert cpu.fma_units(vendor, family, model, bits) == units


def test_caches_of_several_cores_add():
    assert CacheLevel(level=2, size=MIB, instances=2).total == 2 * MIB


def test_arrays_are_larger_than_the_cache_but_not_than_the_memory():
    assert array_size(32 * MIB, 64e9, full=False) == 128 * MIB  # 4 x 32
    assert array_size(32 * MIB, 64e9, full=True) == 256 * MIB  # 8 x 32
    assert array_size(None, 64e9, full=False) == 128 * MIB
    # a quarter of 480 MB for three arrays: 40 MB each, down to whole pages (4096 x 9765)
    assert array_size(32 * MIB, 480e6, full=False) == 4096 * 9765
    # three arrays of at most 1 GB together, whatever the cache
    assert 3 * array_size(1024 * MIB, 64e9, full=True) <= 1e9


def test_working_sets():
    assert working_sets(16, 100) == [16, 24, 32, 48, 64, 96]


def test_detecting_loads_no_framework():
    code = (
        "import sys; from roofline.devices import cpu, calibration, nvidia; cpu.detect(); calibration.key('cpu', 1);"
        "sys.exit(bool({'torch', 'numpy', 'pynvml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
