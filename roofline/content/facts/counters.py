"""Compare bytes by hardware counters with the formulas, and say how many of them were joined to ops."""

from __future__ import annotations

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.analysis.totals import add_up_work
from roofline.content.wording import counted, plain
from roofline.core.schema import Counters


def compare_counters(analysis: Analysis) -> str:
    """Compare the bytes that counters saw with the formulas of the same ops; "" without counters."""
    profile, total = analysis.profile, analysis.total
    counters = counters_on(profile, analysis.device)
    if counters is None:
        return ""
    rows = np.flatnonzero(counted_on(profile, analysis.device).known)
    formulas = add_up_work(profile, analysis.table, rows)
    launching = units.count(total.counted + total.uncounted)
    ops = f" by {units.count(total.counted)} of the {launching} ops that launch kernels" if total.uncounted else ""
    without_formula = sum(profile.signatures[profile.ops[row].signature].cost.bytes is None for row in rows.tolist())
    lacking = f" (no formula for {without_formula} of them)" if without_formula else ""
    return (
        f"{units.byte(total.counted_read)} read from and {units.byte(total.counted_written)} written to main memory"
        f"{ops}; the formulas give {units.byte(formulas.bytes_read)} and {units.byte(formulas.bytes_written)}"
        f"{lacking}; {joined(counters)}"
    )


def joined(counters: Counters) -> str:
    """Say how much of the counters' table belongs to ops of the profile, and how much of the profile it covers."""
    return (
        f"{plain(counters.tool, 60)} ({plain(counters.file, 120)}) counted {counted(counters.kernels, 'kernel')}; "
        f"{counters.kernels - counters.unjoined} of them ({units.percent(counters.joined)} of their time) belong to "
        f"ops of the profile and cover {units.percent(counters.busy)} of its kernels' time"
    )
