"""Two runs on common ground: one set of ceilings, and one decision for both about what a cache still held."""

from __future__ import annotations

from collections import defaultdict, deque

from roofline.core.analysis import Analysis, Cold, analyze, cold_traffic
from roofline.core.device import Device
from roofline.core.profile import Profile

#: What must be equal for two ops to be the same work at the same place: phase, block, class, FLOPs, bytes each way.
_Key = tuple[str, str, str, float | None, float | None, float | None]


def same_device(a: Profile, b: Profile) -> bool:
    """Whether both ran on the same kind of device; then what differs is the runs' and not the hardware's."""
    return (a.device.name, a.device.kind) == (b.device.name, b.device.kind)


def on_common_ground(a: Profile, b: Profile) -> tuple[Analysis, Analysis]:
    """Both runs analysed with one set of ceilings, where it is one device: the best that either has seen.

    Two allocators place buffers differently, so that one run's history calls an input warm and the other's cold. Of
    ops that do the same work at the same place both floors take the fewer cold bytes: a floor is a least time.
    """
    if not same_device(a, b):
        return analyze(a), analyze(b)
    device = _merged(a.device, b.device)
    cold = cold_traffic(a, device), cold_traffic(b, device)
    for one, other in _matched(a, b):
        for column_a, column_b in ((cold[0].read, cold[1].read), (cold[0].written, cold[1].written)):
            column_a[one] = column_b[other] = min(column_a[one], column_b[other])
        high_a, high_b = cold[0].high[one], cold[1].high[other]
        if high_a is not None and high_b is not None:
            cold[0].high[one] = cold[1].high[other] = min(high_a, high_b)
    return analyze(a, device, _above_low(cold[0])), analyze(b, device, _above_low(cold[1]))


def _merged(a: Device, b: Device) -> Device:
    """One device with the best of both sets of ceilings; the same whichever run is named first."""
    first, second = sorted((a, b), key=lambda device: sorted((k, c.value) for k, c in device.ceilings.items()))
    merged = first.seen_again(second.ceilings)
    if not merged.caches:
        return second.seen_again(first.ceilings)
    return merged


def _matched(a: Profile, b: Profile) -> list[tuple[int, int]]:
    """Pairs of ops that do the same work at the same place, the first with the first, and so on."""
    waiting: defaultdict[_Key, deque[int]] = defaultdict(deque)
    for number, key in enumerate(_keys(b)):
        waiting[key].append(number)
    return [(number, waiting[key].popleft()) for number, key in enumerate(_keys(a)) if waiting[key]]


def _keys(profile: Profile) -> list[_Key]:
    found: list[_Key] = []
    for op in profile.ops:
        signature = profile.signatures[op.signature]
        cost, place = signature.cost, (profile.phases[op.phase], profile.blocks[op.block], signature.op_class)
        found.append((*place, cost.flops, cost.bytes_read, cost.bytes_written))
    return found


def _above_low(cold: Cold) -> Cold:
    """The upper end of what is cold is never below the lower one."""
    high = [
        each if each is None else max(each, read + written)
        for read, written, each in zip(cold.read, cold.written, cold.high, strict=True)
    ]
    return Cold(cold.read, cold.written, high)
