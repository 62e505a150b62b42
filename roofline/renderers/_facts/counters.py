"""Bytes by hardware counters in words: what was counted, what had to move, and how much of it was joined to ops."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.caches.counted import counters_on
from roofline.core.schema import Counters
from roofline.renderers._words import counted, plain


def told(analysis: Analysis) -> str:
    """What counters saw of the ops of a step; "" of a step that was not counted."""
    counters, total = counters_on(analysis.profile, analysis.device), analysis.total
    if counters is None:
        return ""
    return (
        f"{units.byte(total.counted_read)} read and {units.byte(total.counted_written)} written of main memory, where "
        f"the formulas ask for {units.byte(total.bytes_read)} and {units.byte(total.bytes_written)}; {joined(counters)}"
    )


def joined(counters: Counters) -> str:
    """How much of the counters' table belongs to ops of the profile, and how much of the profile it covers."""
    return (
        f"{plain(counters.tool, 60)} ({plain(counters.file, 120)}) counted {counted(counters.kernels, 'kernel')}, of "
        f"which {counters.kernels - counters.unjoined} ({units.percent(counters.joined)} of their time) belong to ops "
        f"of the profile, and cover {units.percent(counters.busy)} of the time of its kernels"
    )
