"""Time work on a GPU by events on the stream, while many calls are enqueued.

So the GPU never waits for the host, and no time includes the host's part of a launch.
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
    """Time work on the current stream, by events around each call [s]; a Timer.

    With no `seconds` a call goes before the timed one. The host's work in a first call (making operands, loading a
    library, compiling) would lie between the events, and the race would take it for the time of the work.
    """
    import torch

    if not seconds:
        run()
        torch.cuda.synchronize()
    times = _batch(run, 1)
    call_seconds = max(times[0], 2e-6)
    if seconds > 2 * call_seconds:
        times += _batch(run, min(_MOST, int(seconds / call_seconds)))
    return times


def sustained(run: Callable[[], object], seconds: float) -> tuple[float, float | None]:
    """Measure the median time of a call [s] in the second half of `seconds` without a pause, and the SM clock [Hz].

    Power and heat lower the clock only after some time, so that the best of a short burst does not last. The clock is
    the median over all of `seconds`, None where the driver does not tell it.
    """
    with nvidia.Sampler(nvidia.visible_index(), interval=0.02) as sampler:
        call_seconds = max(_batch(run, 3)[-1], 2e-6)
        calls = max(2, min(_MOST, int(seconds / call_seconds / 4)))
        times: list[float] = []
        while sum(times) < seconds:
            times += _batch(run, calls)
    return second_half(times), median(sampler.clocks) if sampler.clocks else None


def second_half(times: list[float]) -> float:
    """Compute the median of the calls that began after half of the whole time had passed [s]."""
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
