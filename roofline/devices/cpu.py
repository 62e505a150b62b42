"""Describe the CPU in use: name, cores, vector units, caches, and its theoretical peak where that is known."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """Hold a level of data cache: size of one instance [byte], and number of instances that serve the CPUs in use."""

    level: int
    size: int
    instances: int

    @property
    def total(self) -> int:
        """The size of all instances [byte]."""
        return self.size * self.instances


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """Hold the part of the processor that this process may use. None: not known (virtual machines hide much).

    cores: physical cores in the affinity mask; cpus: the mask itself (hardware threads).
    clock: highest clock [Hz]; vector_bits: width of a vector register.
    fma_units: full-width fused multiply-adds that a core starts per cycle; see `fma_units`.
    matrix_units: there is a unit for matrix products beside the vector units (AMX).
    """

    name: str
    cores: int
    cpus: tuple[int, ...]
    clock: float | None = None
    vector_bits: int | None = None
    fma_units: int | None = None
    matrix_units: bool = False
    caches: tuple[CacheLevel, ...] = ()
    memory: float | None = None

    def peak(self, bits: int, threads: int | None = None) -> float | None:
        """Compute the theoretical rate [FLOP/s] for numbers of `bits` bits: cores x clock x lanes x 2 x FMA units.

        None unless all of them are known. More threads than cores add nothing.
        """
        if self.clock is None or self.vector_bits is None or self.fma_units is None:
            return None
        cores = self.cores if threads is None else min(threads, self.cores)
        return cores * self.clock * (self.vector_bits // bits) * 2 * self.fma_units


def detect() -> Cpu:
    """Read the CPU in use from the system, without importing any framework."""
    fields = _cpuinfo()
    cpus = affinity()
    flags = frozenset((fields.get("flags") or fields.get("Features") or "").split())
    bits = vector_bits(flags)
    return Cpu(
        name=_name(fields),
        cores=_cores(cpus),
        cpus=cpus,
        clock=_clock(cpus),
        vector_bits=bits,
        fma_units=fma_units(
            fields.get("vendor_id", ""), _number(fields.get("cpu family")), _number(fields.get("model")), bits
        ),
        matrix_units=any(flag.startswith("amx") for flag in flags) or _apple(),
        caches=_caches(cpus),
        memory=_memory(),
    )


def affinity() -> tuple[int, ...]:
    """List the hardware threads that this process may run on, ascending."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def vector_bits(flags: frozenset[str]) -> int | None:
    """Read the width of a vector register [bit] from the CPU's flags.

    SVE's width is not among the flags, so a CPU that has it is of unknown width.
    """
    if "avx512f" in flags:
        return 512
    if "avx2" in flags:
        return 256
    if "sve" in flags:
        return None
    return 128 if {"asimd", "neon"} & flags else None


def fma_units(vendor: str, family: int | None, model: int | None, bits: int | None) -> int | None:
    """Look up how many fused multiply-adds of full register width a core starts per cycle, where that is known.

    Rule: an entry per microarchitecture, none guessed. A core that runs 512-bit instructions as two halves
    (Zen 4) counts 1. Left out on purpose: Intel's AVX-512 cores, of which some models of one family have one
    unit and others two; mobile Zen 5, some of which are half as wide; all ARM cores.
    """
    if family is None or model is None:
        return None
    if vendor == "AuthenticAMD":
        if family == 0x17 and bits == 256:  # Zen and Zen+ have 128-bit units, Zen 2 (models from 0x30) 256
            return 2 if model >= 0x30 else 1
        if family == 0x19:  # Zen 3: two of 256 bits; Zen 4: the same two serve 512-bit instructions in halves
            return {256: 2, 512: 1}.get(bits or 0)
        if family == 0x1A and bits == 512 and model < 0x20:  # Zen 5 servers; bf16 products confirmed 2 x 512
            return 2
    # Haswell, Broadwell, Skylake client and its successors without AVX-512: two of 256 bits.
    clients = {60, 61, 63, 69, 70, 71, 78, 79, 86, 94, 142, 158, 165, 166}
    return 2 if vendor == "GenuineIntel" and family == 6 and bits == 256 and model in clients else None


def _cpuinfo() -> dict[str, str]:
    """Read the first processor's block of /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _name(fields: dict[str, str]) -> str:
    name = fields.get("model name") or platform.processor() or platform.machine() or "CPU"
    return re.sub(r"\s+", " ", re.sub(r"\((R|TM)\)", "", name)).strip()


def _cores(cpus: tuple[int, ...]) -> int:
    """Count physical cores: distinct groups of sibling threads among `cpus`."""
    groups = {_read(_SYSTEM / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    return max(1, len(groups))


def _clock(cpus: tuple[int, ...]) -> float | None:
    """Read the highest clock [Hz] that the system reports; the nominal clock would be too low."""
    values = (_read(_SYSTEM / f"cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in cpus)
    return max((1e3 * int(value) for value in values if value and value.isdigit()), default=None)


def _caches(cpus: tuple[int, ...]) -> tuple[CacheLevel, ...]:
    sizes_by_level: dict[int, dict[str, int]] = {}
    for cpu in cpus:
        for index in sorted((_SYSTEM / f"cpu{cpu}/cache").glob("index*")):
            size = re.fullmatch(r"(\d+)([KMG]?)", _read(index / "size") or "")
            level = _number(_read(index / "level"))
            if _read(index / "type") == "Instruction" or size is None or level is None:
                continue
            factor = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]]
            shared = _read(index / "shared_cpu_list") or str(cpu)
            sizes_by_level.setdefault(level, {})[shared] = int(size[1]) * factor
    return tuple(CacheLevel(level, max(sizes.values()), len(sizes)) for level, sizes in sorted(sizes_by_level.items()))


def _memory() -> float | None:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def _apple() -> bool:
    return platform.system() == "Darwin" and platform.machine() == "arm64"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
