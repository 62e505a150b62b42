"""The launch floors of an imported step: how short its shortest kernel was, and its shortest copy or fill."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.device import Ceiling, Device
from roofline.core.executor import COPY

#: Of fewer kernels the shortest may do anything. By choice.
_FEWEST = 50
#: A shortest kernel that lasts longer [ns] did some work. In the public traces of docs/imports.md, of V100, A100, H100,
#: B200 and MI300X, the shortest one lasts 0.7 to 2.0 us.
_LONGEST = 5_000
#: Older profilers record whole microseconds [ns].
_MICROSECOND = 1_000


def with_launch_floor(device: Device, executor: str, durations: NDArray[np.int64], tick: int | None = None) -> Device:
    """`device` with a launch floor for `executor`, where the trace has one below what is known of the device.

    executor: what launches kernels, or `COPY`. durations: of all kernels [ns], copies and fills left out; of `COPY`
    those of copies and fills. tick: of the trace's clock [ns], where it is coarse (`coarse_tick`): then the floor is a
    range. No kernel, copy or fill ends sooner than one that does next to nothing, so that the shortest of many is such
    a floor, or above it by what it did (`analysis.launch_floor` says how far). Where a lower floor is known of the
    device, it stays, with the shortest one beside it.
    """
    lasted = durations[durations > 0]
    if not device.ceilings or len(lasted) < _FEWEST or lasted.min() > _LONGEST:
        return device
    name, shortest = f"launch.{executor}", float(lasted.min()) * 1e-9
    recorded = device.ceilings.get(name)
    if recorded is not None and recorded.value <= shortest:
        return _with(device, name, msgspec.structs.replace(recorded, shortest=shortest))
    # As if the floor were that of the shortest hundredth: the shortest kernel may be one that nobody else has.
    spread = round(1 - shortest / (float(np.quantile(lasted, 0.01)) * 1e-9), 4)
    activities = "copies and fills" if executor == COPY else "kernels"
    source = f"the trace: the shortest of {len(lasted)} {activities}"
    high = None
    if tick is not None:
        high = shortest + tick * 1e-9
        source += f", in ticks of {tick * 1e-3:g} µs: up to one more"
    return _with(device, name, Ceiling(value=shortest, source=source, spread=spread, high=high, shortest=shortest))


def _with(device: Device, name: str, ceiling: Ceiling) -> Device:
    return msgspec.structs.replace(device, ceilings={**device.ceilings, name: ceiling})


def coarse_tick(durations: NDArray[np.int64], starts: NDArray[np.int64]) -> int | None:
    """The tick of a clock that counts whole microseconds [ns], by all times of a trace; None of a finer one.

    Of few durations nobody can say: they may all be whole microseconds by chance.
    """
    lasted = durations[durations > 0]
    offsets = starts - starts.min(initial=np.iinfo(np.int64).max)
    is_coarse = len(lasted) >= _FEWEST and not (lasted % _MICROSECOND).any() and not (offsets % _MICROSECOND).any()
    return _MICROSECOND if is_coarse else None
