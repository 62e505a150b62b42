"""Analyse two runs with one set of ceilings, and one decision for both about what a cache still held."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from roofline.analysis.analysis import Analysis, analyze_timed
from roofline.analysis.caches.traffic import Cold, cold_traffic, with_counted
from roofline.analysis.launch_floor import seen_device
from roofline.comparison.matching import by_occurrence
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.schema import Profile


def same_device(a: Device, b: Device) -> bool:
    """Return whether two devices have the same ceilings: those of a CPU are of the threads that measured them."""
    if (a.name, a.kind) != (b.name, b.kind):
        return False
    threads = {device.conditions.get("threads") for device in (a, b)} - {None}
    return a.kind != "cpu" or len(threads) < 2


def analyze_together(a: Profile, b: Profile) -> tuple[Analysis, Analysis]:
    """Analyse two runs with one set of ceilings, where it is one device: the best that either has seen.

    Of two devices what is known of one alone, of caches and launches, is not held against the other, nor are bytes that
    hardware counted in one run alone. Two allocators place buffers differently, so that one run's history calls an
    input warm and the other's cold: of ops that do the same work at the same place both floors take the fewer cold
    bytes, since a floor is a least time.
    """
    if (a.counters is None) != (b.counters is None):
        a, b = replace(a, counters=None), replace(b, counters=None)
    if not same_device(a.device, b.device):
        ours, theirs = _known_alike(a.device, b.device), _known_alike(b.device, a.device)
        return analyze_timed(replace(a, device=ours)), analyze_timed(replace(b, device=theirs))
    device = best_ceilings((seen_device(a), seen_device(b)))
    cold_a, cold_b = _fewest(cold_traffic(a, device), cold_traffic(b, device), by_occurrence(_keys(a), _keys(b)))
    cold_a, cold_b = with_counted(a, device, cold_a), with_counted(b, device, cold_b)
    return analyze_timed(a, device, cold_a), analyze_timed(b, device, cold_b)


def _known_alike(device: Device, other_device: Device) -> Device:
    """Return `device` as far as the same is known of the other one.

    A cache of which the other device has no bandwidth is left out: its ops would be far from main memory's roof on
    one device and above it on the other. So is a launch floor that is the shortest kernel of a trace, on either: what
    these kernels take longer on one device would be told as the device's, whatever they do.
    """
    from_trace = {
        name for compared in (device, other_device) for name, ceiling in compared.ceilings.items() if ceiling.from_trace
    }
    comparable = replace(
        device, ceilings={name: ceiling for name, ceiling in device.ceilings.items() if name not in from_trace}
    )
    return comparable if other_device.serves is not None or device.serves is None else comparable.without_caches


def _fewest(a: Cold, b: Cold, pairs: Sequence[tuple[int, int]]) -> tuple[Cold, Cold]:
    """Give both ops of each pair the fewer cold bytes of the two; the upper end is never below the lower one."""
    rows_a, rows_b = np.asarray(pairs, np.int64).reshape(-1, 2).T
    if (a.high is None) != (b.high is None):  # a point is a range whose ends are one
        a, b = (cold if cold.high is not None else cold._replace(high=cold.read + cold.written) for cold in (a, b))

    def fewer(bytes_a: Array, bytes_b: Array) -> tuple[Array, Array]:
        bytes_a, bytes_b = bytes_a.copy(), bytes_b.copy()
        bytes_a[rows_a] = bytes_b[rows_b] = np.minimum(bytes_a[rows_a], bytes_b[rows_b])
        return bytes_a, bytes_b

    highs = (None, None) if a.high is None or b.high is None else fewer(a.high, b.high)
    first, second = (
        Cold(read, written, None if high is None else np.maximum(high, read + written), a.reason or b.reason)
        for read, written, high in zip(fewer(a.read, b.read), fewer(a.written, b.written), highs, strict=True)
    )
    return first, second


def best_ceilings(devices: Iterable[Device]) -> Device:
    """Return one device with the best ceilings that any of them has seen; the same in whatever order they are given.

    Ceilings that a user gave may be another device's, and are merged with no others: where some were measured these
    count alone, else those of one device.
    """
    devices = tuple(devices)
    origin = min((device.ceilings_of for device in devices if device.ceilings), default="")
    alike = [device for device in devices if device.ceilings_of == origin]
    best, *remaining = sorted(alike or devices, key=_with_caches_first)
    for device in remaining:
        best = best.merge_measurements(device.ceilings)
    return best


def _with_caches_first(device: Device) -> tuple[bool, list[tuple[str, float]]]:
    return not device.caches, sorted((name, ceiling.value) for name, ceiling in device.ceilings.items())


def _keys(profile: Profile) -> list[Hashable]:
    """Return what must be equal for two ops to be the same work at the same place."""
    costs = [
        (signature.op_class, signature.cost.flops, signature.cost.bytes_read, signature.cost.bytes_written)
        for signature in profile.signatures
    ]
    return [(profile.phases[op.phase], profile.blocks[op.block], costs[op.signature]) for op in profile.ops]
