"""Write JSON with stable fields (docs/json.md), for programs; shares are of one, absent is null."""

from __future__ import annotations

import json
from typing import Any

from roofline.content.facts.wall import Chart, Row, Run


def render(chart: Chart) -> str:
    """Write the document. ASCII, so that no name in it can act on a terminal."""
    document = {
        "schema": 1,
        "title": chart.title,
        "runs": [_run(run) for run in chart.runs],
        "published": [_published(run) for run in chart.published],
        "notes": list(chart.notes),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _run(run: Run) -> dict[str, Any]:
    analysis = run.analysis
    assert analysis is not None, "a run has an analysis"
    profile = analysis.profile
    return {
        "name": run.name,
        "model": profile.model,
        "mode": profile.mode,
        "backend": profile.backend,
        "batch": profile.batch,
        "seq": profile.seq,
        "device": analysis.device.name,
        "arithmetic": analysis.precision,
        "timed": run.timed,
        "groups": {row.group: _row(row) for row in run.rows},
    }


def _published(run: Run) -> dict[str, Any]:
    table = run.table
    assert table is not None, "a published run has a table"
    return {
        "name": table.name,
        "step": table.step,
        "device": table.hardware,
        "arithmetic": table.stated,
        "citable": table.citable,
        "source": table.source,
        "groups": {row.group: _row(row) for row in run.rows},
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "apart": row.apart,
        "flops": row.flops,
        "bytes": row.bytes,
        "time": row.time,
        "busy_share": row.busy,
        "matmul_rate_over_rate": row.slower,
        "seconds": row.seconds,
        "floor": None if row.floor is None else row.floor[0],
        "floor_reach": None if row.floor is None else row.floor[1],
        "attained": None if row.attained is None else row.attained[0],
        "attained_high": None if row.attained is None else row.attained[1],
        "bound": row.bound,
    }
