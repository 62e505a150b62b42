"""Kernels that XLA launched in a command buffer (a CUDA graph): their events name the buffer, or nothing."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from roofline.traces.xplane.reader import XTrace

_BUFFER = re.compile(r"command_buffer", re.IGNORECASE)


def replayed(trace: XTrace) -> NDArray[np.bool_]:
    """Which events of a device were launched so; shape (n,)."""
    named = np.asarray([bool(_BUFFER.search(name)) for name in trace.names] + [False], bool)
    on_device = np.asarray([line.plane.startswith("/device:") for line in trace.lines] + [False], bool)
    found: NDArray[np.bool_] = on_device[trace.line] & ((trace.graph != 0) | named[trace.hlo_op])
    return found
