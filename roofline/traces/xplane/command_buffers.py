"""Kernels that XLA launched in a command buffer (a CUDA graph): their events name the buffer, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roofline.traces.xplane.reader import XTrace

_BUFFER = re.compile(r"command_buffer", re.IGNORECASE)
#: What CUDA and HIP call the launch of a graph.
_LAUNCH = re.compile(r"GraphLaunch", re.IGNORECASE)


def replayed(trace: XTrace) -> NDArray[np.bool_]:
    """Mark the events of a device that a command buffer launched; shape (n,)."""
    named = np.asarray([bool(_BUFFER.search(name)) for name in trace.names] + [False], bool)
    on_device = np.asarray([line.plane.startswith("/device:") for line in trace.lines] + [False], bool)
    by_buffer: NDArray[np.bool_] = on_device[trace.line] & ((trace.graph != 0) | named[trace.hlo_op])
    return by_buffer


def launches(trace: XTrace) -> int:
    """Count the host's launches of command buffers, as far as the trace shows calls of the driver."""
    named = np.asarray([bool(_LAUNCH.search(name)) for name in trace.names] + [False], bool)
    on_host = np.asarray([not line.plane.startswith("/device:") for line in trace.lines] + [False], bool)
    return int((named[trace.name] & on_host[trace.line]).sum())


def per_step(traces: Sequence[XTrace], steps: Sequence[Sequence[tuple[int, int]]]) -> tuple[float, float] | None:
    """Launches of command buffers, and events of a device that they launched, per step; None where it is not shown.

    steps: (start, end) of those of each trace [ps]. Calls of the driver may lie before the step whose kernels they
    launch, so a launch has as many events in a step as in the traces as a whole.
    """
    masks = [replayed(trace) for trace in traces]
    replayed_events, launched = sum(int(mask.sum()) for mask in masks), sum(map(launches, traces))
    inside = [
        int((mask & (trace.start >= low) & (trace.start < high)).sum())
        for trace, mask, windows in zip(traces, masks, steps, strict=True)
        for low, high in windows
    ]
    if not replayed_events or not launched or not inside:
        return None
    events = sum(inside) / len(inside)
    return launched / replayed_events * events, events
