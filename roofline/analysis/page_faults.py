"""Bound the time of a CPU's step that page faults explain, by what a fault can cost.

A minor page fault maps one page, which the system clears: of 4 KiB, or a huge one, of 2 MiB on x86-64 and on ARM with
pages of 4 KiB. A thread that clears a huge page at its share of the main memory's bandwidth takes tens of µs (2 MiB at
38 GB/s: 55 µs); a fault on a small page takes under 2 µs, trap included. So the former bounds both.
"""

from __future__ import annotations

from roofline.core.device import Device
from roofline.core.executor import COMPILING
from roofline.core.numerals import whole
from roofline.core.schema import Profile

#: Conditions of plain steps: time in the kernel of the operating system [s], and its page faults.
SYSTEM, FAULTS = "system_seconds_per_step", "page_faults_per_step"
#: The largest page that a fault maps and clears [byte].
_HUGE_PAGE = 2 << 20


def fault_seconds(profile: Profile, device: Device) -> float:
    """Return how much of the system's time in a plain step its page faults explain [s], at most.

    System time within compiling stands in the time of compiling; how much of it was there nobody recorded, and so none
    of it, up to the time of compiling, is taken for page faults. 0 where no bandwidth of the main memory is known.
    """
    conditions = profile.conditions
    outside_compiling = max(0.0, conditions.get(SYSTEM, 0.0) - conditions.get(COMPILING, 0.0))
    return min(outside_compiling, conditions.get(FAULTS, 0.0) * _longest_fault(profile, device))


def _longest_fault(profile: Profile, device: Device) -> float:
    """Return what clearing a huge page takes a thread that shares the main memory with all others of the step [s]."""
    rates = device.family("dram").values()
    threads = whole(profile.environment.get("threads", ""))
    return _HUGE_PAGE * (1 if threads is None else threads) / min(rates) if rates else 0.0
