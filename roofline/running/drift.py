"""Show how the steps of a program change while it runs, from several measurements of it (`--every`)."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.analysis.analysis import Analysis
from roofline.memory.use import memory_use
from roofline.units import UNKNOWN, byte, percent, seconds, seconds_between


def lines(measured: Sequence[tuple[int, int, Analysis]]) -> list[str]:
    """Write a line for each measurement: steps, time of a step with its 95 % interval, idle time, peak memory.

    measured: (first step, last step, analysis) of each.
    """
    rows = [("steps", "time of a step", "95 % interval", "idle", "peak memory")]
    for first, last, analysis in measured:
        interval = analysis.wall_interval
        gap = analysis.gap_told
        rows.append(
            (
                f"{first}-{last}",
                seconds(analysis.wall),
                UNKNOWN if interval is None else seconds_between(*interval),
                percent(None if gap is None else gap / analysis.wall),
                byte(memory_use(analysis.profile).peak),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(word.rjust(width) for word, width in zip(row, widths, strict=True)) for row in rows]
