"""Two runs on common ground: one set of ceilings, and one decision for both about what a cache still held."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from msgspec.structs import replace

from roofline.analysis.analysis import Analysis, analyze_timed
from roofline.analysis.caches.traffic import Array, Cold, cold_traffic, with_counted
from roofline.analysis.launch_floor import seen_device
from roofline.comparison.matching import by_occurrence
from roofline.core.device import Device
from roofline.core.rows import Ints
from roofline.core.schema import Profile


def same_device(a: Profile, b: Profile) -> bool:
    """Whether both ran on the same kind of device; then what differs is the runs' and not the hardware's."""
    return (a.device.name, a.device.kind) == (b.device.name, b.device.kind)


def analyze_together(a: Profile, b: Profile) -> tuple[Analysis, Analysis]:
    """Both runs analysed with one set of ceilings, where it is one device: the best that either has seen.

    Of two devices what is known of one alone, of caches and launches, is not held against the other.
    Two allocators place buffers differently, so that one run's history calls an input warm and the other's cold. Of
    ops that do the same work at the same place both floors take the fewer cold bytes: a floor is a least time.
    Bytes by hardware counters hold where both runs have them, each its own; those of one run alone are left out, or
    what was counted there and not here would be told as a difference of the runs.
    """
    if (a.counters is None) != (b.counters is None):
        a, b = replace(a, counters=None), replace(b, counters=None)
    if not same_device(a, b):
        ours, theirs = _known_alike(a.device, b.device), _known_alike(b.device, a.device)
        return analyze_timed(replace(a, device=ours)), analyze_timed(replace(b, device=theirs))
    device = best_ceilings((seen_device(a), seen_device(b)))
    pairs = np.asarray(by_occurrence(_keys(a), _keys(b)), np.int64).reshape(-1, 2).T
    one, other = _fewest(cold_traffic(a, device), cold_traffic(b, device), *pairs)
    one, other = with_counted(a, device, one), with_counted(b, device, other)
    return analyze_timed(a, device, one), analyze_timed(b, device, other)


def _known_alike(device: Device, other: Device) -> Device:
    """`device` as far as the same is known of the other one.

    A cache of which the other device has no bandwidth is left out: its ops would be far from main memory's roof on
    one device and above it on the other. So is a launch floor that is the shortest kernel of a trace, on either: what
    these kernels take longer on one device would be told as the device's, whatever they do.
    """
    seen = {name for one in (device, other) for name, ceiling in one.ceilings.items() if ceiling.from_trace}
    found = replace(device, ceilings={name: one for name, one in device.ceilings.items() if name not in seen})
    return found if other.serves is not None or device.serves is None else found.without_caches


def _fewest(a: Cold, b: Cold, one: Ints, other: Ints) -> tuple[Cold, Cold]:
    """Of the ops `one` of a and `other` of b, pair by pair, the fewer cold bytes of both."""

    if (a.high is None) != (b.high is None):  # a point is a range whose ends are one
        a, b = (cold if cold.high is not None else cold._replace(high=cold.read + cold.written) for cold in (a, b))

    def fewer(ours: Array, theirs: Array) -> tuple[Array, Array]:
        ours, theirs = ours.copy(), theirs.copy()
        ours[one] = theirs[other] = np.minimum(ours[one], theirs[other])
        return ours, theirs

    read, written = fewer(a.read, b.read), fewer(a.written, b.written)
    high = (None, None) if a.high is None or b.high is None else fewer(a.high, b.high)
    reason = a.reason or b.reason
    ours, theirs = (_above_low(Cold(*columns, reason)) for columns in zip(read, written, high, strict=True))
    return ours, theirs


def best_ceilings(devices: Iterable[Device]) -> Device:
    """One device with the best ceilings that any of them has seen; the same in whatever order they are given.

    Ceilings that a user gave may be another device's, and are merged with no others: where some were measured these
    count alone, else those of one device.
    """
    devices = tuple(devices)
    origin = min((device.ceilings_of for device in devices if device.ceilings), default="")
    alike = [device for device in devices if device.ceilings_of == origin]
    first, *others = sorted(alike or devices, key=lambda device: (not device.caches, _ceilings(device)))
    for device in others:
        first = first.seen_again(device.ceilings)
    return first


def _ceilings(device: Device) -> list[tuple[str, float]]:
    return sorted((name, ceiling.value) for name, ceiling in device.ceilings.items())


def _keys(profile: Profile) -> list[Hashable]:
    """What must be equal for two ops to be the same work at the same place."""
    found: list[Hashable] = []
    for op in profile.ops:
        signature = profile.signatures[op.signature]
        cost, place = signature.cost, (profile.phases[op.phase], profile.blocks[op.block], signature.op_class)
        found.append((*place, cost.flops, cost.bytes_read, cost.bytes_written))
    return found


def _above_low(cold: Cold) -> Cold:
    """The upper end of what is cold is never below the lower one."""
    if cold.high is None:
        return cold
    return cold._replace(high=np.maximum(cold.high, cold.read + cold.written))
