"""How work on a GPU is timed: by events on the stream, while many calls are enqueued.

So the GPU never waits for the host, and what the host needs for a launch is in no time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

from roofline.devices import nvidia

#: Events kept at once.
_MOST = 1000


def events(run: Callable[[], object], seconds: float) -> list[float]:
    """The Timer of work on the current stream: times between events around each call [s].

    With no `seconds` there is a call before the one that is timed. What the host does in a first call (making operands,
    loading a library, compiling) would lie between the events, and the race would take it for the time of the work.
    """
    import torch

    if not seconds:
        run()
        torch.cuda.synchronize()
    times = _batch(run, 1)
    each = max(times[0], 2e-6)
    if seconds > 2 * each:
        times += _batch(run, min(_MOST, int(seconds / each)))
    return times


def sustained(run: Callable[[], object], seconds: float) -> tuple[float, float | None]:
    """The median time of a call [s] in the second half of `seconds` without a pause, and the SM clock [Hz] in all.

    Power and heat lower the clock only after some time, so that the best of a short burst is not what lasts. The clock
    is None where the driver does not tell it.
    """
    with nvidia.Sampler(nvidia.visible_index(), interval=0.02) as sampler:
        each = max(_batch(run, 3)[-1], 2e-6)
        calls = max(2, min(_MOST, int(seconds / each / 4)))
        times: list[float] = []
        while sum(times) < seconds:
            times += _batch(run, calls)
    return second_half(times), median(sampler.clocks) if sampler.clocks else None


def second_half(times: list[float]) -> float:
    """The median of the calls that began after half of the whole time had passed."""
    passed, half = 0.0, sum(times) / 2
    late = []
    for time in times:
        if passed >= half:
            late.append(time)
        passed += time
    return median(late or times[-1:])


def _batch(run: Callable[[], object], calls: int) -> list[float]:
    import torch

    marks: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return [1e-3 * start.elapsed_time(end) for start, end in pairwise(marks)]
