"""Write CSV with one row per run and group, for spreadsheets and data frames."""

from __future__ import annotations

from roofline.content.facts.wall import Chart, Row, Run
from roofline.renderers._csv import cells

_FIELDS = (
    *("run", "published", "group", "apart", "flops", "bytes", "time", "busy_share", "matmul_rate_over_rate"),
    *("seconds", "floor", "floor_reach", "bound"),
)


def render(chart: Chart) -> str:
    """Write shares of one and seconds, to 12 digits; unknown is empty."""
    return cells.table(_FIELDS, [_line(run, row) for run in chart.every for row in run.rows])


def _line(run: Run, row: Row) -> list[str]:
    low, high = (None, None) if row.floor is None else row.floor
    return [
        cells.text(run.name),
        "yes" if run.table is not None else "no",
        row.group,
        "yes" if row.apart else "no",
        *map(cells.number, (row.flops, row.bytes, row.time, row.busy, row.slower, row.seconds, low, high)),
        row.bound or "",
    ]
