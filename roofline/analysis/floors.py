"""Floors and bounds: the least time an op can take on a device, and which roof says so (docs/terms.md).

    t_compute = max(F_matrix / P_matrix, F_vector / P_vector, sum of T_f / P_f)
    t_memory  = max(B_cold / BW_dram, B_c / BW_c of each cache)
    t_launch  = launches * launch floor
    floor     = the largest of the three; the bound is which one

A floor depends on the op's work and the device, never on the op's measured time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.schema import Signature

#: Memory patterns: (reads as a share of traffic, whether what is written was also read).
PATTERNS: Mapping[str, tuple[float, bool]] = {
    "read": (1.0, False),
    "triad": (2 / 3, False),
    "copy": (1 / 2, False),
    "write": (0.0, False),
    "inplace": (1 / 2, True),
    "update": (2 / 3, True),
}

#: Vector work on 16-bit types is done in fp32: ATen's and XLA's `opmath` types. On complex numbers it is done on their
#: parts, at least one FLOP for each that is counted.
VECTOR_PRECISION = {"bf16": "fp32", "fp16": "fp32", "complex64": "fp32", "complex128": "fp64"}

#: An op may run up to this much faster than its floor before it counts as a defect of count or ceiling.
ABOVE_TOLERANCE = 0.03
#: Below this share of its floor, an op is said to be under a roof, not at it.
ATTAINED = 0.5
#: What is missing of a product whose arithmetic nobody knows.
UNKNOWN_ARITHMETIC = "matrix precision"
#: The second highest term within this ratio of the highest: near the ridge.
RIDGE_RATIO = 0.9


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a floor [s], None where a ceiling is missing, and the ceilings they rest on.

    compute, memory and launch are 0 where the op has no such work. compute_high, memory_high, launch_high: their upper
    ends.
    """

    compute: float | None
    compute_high: float | None
    memory: float | None
    memory_high: float | None
    launch: float | None
    launch_high: float | None
    compute_ceiling: str
    memory_ceiling: str
    launch_ceiling: str
    missing: tuple[str, ...]


def pattern(cost: Cost, inplace: bool, device: Device) -> str | None:
    """Return the memory ceiling nearest the op's mix of compulsory reads and writes, among those the device has."""
    traffic = cost.bytes
    if not traffic or cost.bytes_read is None:
        return None
    return nearest_pattern(cost.bytes_read / traffic, inplace, device)


def nearest_pattern(share: float, inplace: bool, device: Device) -> str | None:
    """Return the memory ceiling nearest a share of reads in the traffic, among those the device has."""
    patterns = [name for name in PATTERNS if f"dram.{name}" in device.ceilings]
    if not patterns:
        return None
    # In-place streams are up to twice as fast on CPUs (no line is fetched only to be overwritten), so being in place
    # weighs more than the mix.
    return min(patterns, key=lambda name: (PATTERNS[name][1] != inplace, abs(PATTERNS[name][0] - share)))


def cache_time(size: float, traffic: float, device: Device) -> tuple[float, str]:
    """Return the least time of traffic [byte] between an op and caches [s], and the level that sets it.

    size: of what the op touches [byte]. A level holds no more than its usable size, and what comes from a larger one
    passes it, while the next bytes are on their way: the slowest level decides. (0, "") where no bandwidth is known.
    """
    slowest, held = (0.0, ""), 0.0
    for cache in device.caches:
        rate = device.rate(f"cache.{cache.level}")
        if rate is not None and size > held:
            slowest = max(slowest, ((1 - held / size) * traffic / rate, cache.level))
            held = max(held, cache.size or 0.0)
    return slowest


def vector_ceiling(signature: Signature) -> str:
    """Return the ceiling of an op's vector work."""
    dtype = signature.computes_in or "fp32"
    return f"vector.{VECTOR_PRECISION.get(dtype, dtype)}"


def compute_time(signature: Signature, device: Device) -> tuple[float | None, str, list[str]]:
    """Return t_compute [s], the ceiling that sets it, and the ceilings that are missing. None: nothing known."""
    cost, missing = signature.cost, []
    matrix = vector = 0.0
    if cost.useful_flops:
        arithmetic = signature.precision.arithmetic if signature.precision else None
        name = f"matrix.{arithmetic}"
        peak = device.rate(name)
        if peak is None:
            missing.append(name if arithmetic else UNKNOWN_ARITHMETIC)
        else:
            matrix = cost.useful_flops / peak
    if cost.vector_flops:
        name = vector_ceiling(signature)
        peak = device.rate(name)
        if peak is None:
            missing.append(name)
        else:
            vector = cost.vector_flops / peak
    function_times = {}
    for function, number in (cost.functions or {}).items():
        rate = device.rate(f"function.{function}")
        if rate is None:
            missing.append(f"function.{function}")
        else:
            function_times[function] = number / rate
    functions = sum(function_times.values())
    units = matrix + vector if device.shared_ports else max(matrix, vector)
    if functions > units:
        ceiling = f"function.{max(function_times, key=lambda name: function_times[name])}"
    elif matrix >= vector:
        ceiling = f"matrix.{signature.precision.arithmetic if signature.precision else None}"
    else:
        ceiling = vector_ceiling(signature)
    time = max(units, functions)
    has_work = bool(cost.useful_flops or cost.vector_flops or cost.functions)
    if has_work and time == 0.0:
        return None, ceiling, missing
    return time, ceiling, missing


def slowest_product(signature: Signature, device: Device) -> float | None:
    """Return what a product takes in the slowest arithmetic that it may have run in [s]: of its inputs, or fp32.

    No library multiplies in more digits than both. None where the device has neither ceiling.
    """
    inputs = signature.precision.inputs if signature.precision else "fp32"
    rates = [rate for name in {inputs, "fp32"} if (rate := device.rate(f"matrix.{name}")) is not None]
    return signature.cost.useful_flops / min(rates) if rates and signature.cost.useful_flops else None


#: Links that a class of ops moves its bytes over, instead of main memory.
LINKS: Mapping[str, tuple[str, ...]] = {"transfer": ("link.h2d", "link.d2h"), "communication": ("link.network",)}


def over_a_link(signature: Signature, device: Device) -> tuple[float | None, str, tuple[str, ...]]:
    """Return (least time [s], ceiling, missing ceilings) of a transfer or a collective; None without a known link."""
    rates = {name: rate for name in LINKS[signature.op_class] if (rate := device.rate(name)) is not None}
    if not rates:
        return None, "", LINKS[signature.op_class][:1]
    name = max(rates, key=lambda link: rates[link])
    # What is read on one side is written on the other: it crosses once.
    return max(signature.cost.bytes_read or 0.0, signature.cost.bytes_written or 0.0) / rates[name], name, ()


def terms(
    signature: Signature,
    device: Device,
    executor: str,
    launches: int,
    cold_read: float,
    cold_written: float,
    cold_high: float | None = None,
    counted: bool = False,
) -> Terms:
    """Return all terms of the floor of one op.

    cold_read, cold_written: bytes that come from and go to main memory; cold_high: their sum at the upper end of the
    interval where no buffer history is known (None: it is known, the floor is a point).
    counted: whether hardware counted them: then their mix decides which ceiling of main memory holds.
    """
    if signature.op_class in LINKS:
        crossing, link, absent = over_a_link(signature, device)
        none = None if crossing is None else 0.0
        return Terms(none, none, crossing, crossing, None, None, "", link, "", absent)
    compute, compute_ceiling, missing = compute_time(signature, device)
    cold = cold_read + cold_written
    traffic = signature.cost.bytes or 0.0
    memory: float | None = 0.0
    memory_high: float | None = 0.0
    memory_ceiling = ""
    if traffic or (counted and cold):
        if counted and cold:
            mix = nearest_pattern(cold_read / cold, signature.inplace, device)
        else:
            mix = pattern(signature.cost, signature.inplace, device)
        # On in-place traffic what is read and written is the same line: it occupies the cache once.
        held = (
            max(signature.cost.bytes_read or 0.0, signature.cost.bytes_written or 0.0) if signature.inplace else traffic
        )
        from_cache, level = cache_time(held, traffic, device)
        dram = device.rate(f"dram.{mix}") if mix else None
        if dram is None:
            missing.append("dram")
        from_dram = cold / dram if dram else 0.0
        memory = max(from_dram, from_cache) if dram or level else None
        high = cold if cold_high is None else cold_high
        memory_high = max(high / dram if dram else 0.0, from_cache) if dram or level else None
        memory_ceiling = f"dram.{mix}" if from_dram >= from_cache else f"cache.{level}"
    launch_ceiling = f"launch.{executor}"
    limit = device.ceilings.get(launch_ceiling)
    launch = None if limit is None else launches * limit.value
    launch_high = None if limit is None else launches * (limit.value if limit.high is None else limit.high)
    if launch is None:
        missing.append(launch_ceiling)
    ceilings = compute_ceiling, memory_ceiling, launch_ceiling
    compute_high = compute
    if UNKNOWN_ARITHMETIC in missing and (slowest := slowest_product(signature, device)) is not None:
        compute_high = max(compute or 0.0, slowest)
    return Terms(compute, compute_high, memory, memory_high, launch, launch_high, *ceilings, tuple(missing))
