"""Write JSON with stable fields (docs/json.md), for programs; times in seconds, absent is null."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import msgspec

from roofline.content.facts import sweep
from roofline.sweeping.grid import Border, Cell, Grid, Result


def render(grid: Grid) -> str:
    """Write the document. ASCII, so that no name in it can act on a terminal."""
    document = {
        "schema": 1,
        "backends": list(grid.backends),
        "missing": grid.missing,
        "cells": [_cell(cell) for cell in grid.cells],
        "borders": [_border(border) for border in grid.borders],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "model": cell.cell.model,
        "mode": cell.cell.mode,
        "size": cell.cell.size,
        "precision": cell.cell.precision,
        "batch": cell.cell.batch,
        "seq": cell.cell.seq,
        "fastest": cell.fastest,
        "next": cell.next,
        "settled": cell.is_settled,
        "predicted": cell.predicted,
        "factor": cell.factor,
        "factor_ci95": cell.factor_ci95,
        "cause": sweep.cause(cell.cause) or None,
        "break_even": None if cell.break_even is None else asdict(cell.break_even),
        "runs": [_result(result) for result in cell.results],
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "backend": result.point.backend,
        "key": result.point.key,
        "device": result.device or None,
        "wall": result.wall,
        "wall_ci95": result.ci95,
        "first": result.first,
        "limit": result.limit,
        "limit_share": result.share,
        "times": dict(result.times) or None,
        "disturbed": result.is_disturbed,
        "samples_per_second": result.samples,
        "joules": result.joules,
        "joules_per_sample": result.joules_per_sample,
        "joules_relative": result.joules_relative,
        "predicted": None if result.predicted is None else asdict(result.predicted),
        "failure": None if result.failure is None else msgspec.to_builtins(result.failure),
    }


def _border(border: Border) -> dict[str, Any]:
    return {
        "id": border.kind,
        "axis": border.axis,
        "model": border.cell.model,
        "mode": border.cell.mode,
        "precision": border.cell.precision,
        "batch": None if border.axis == "batch" else border.cell.batch,
        "seq": None if border.axis == "seq" else border.cell.seq,
        "backend": border.backend or None,
        "low": border.low,
        "high": border.high,
        "between": list(border.between),
        "before": border.before,
        "after": border.after,
        "text": sweep.border(border),
    }
