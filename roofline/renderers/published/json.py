"""JSON with stable fields (docs/published.md): seconds, FLOP, bytes, and their rates."""

from __future__ import annotations

import json
from typing import Any

from roofline.published.implied import Implied
from roofline.published.table import Table


def render(table: Table) -> str:
    """The publication, its cells in order, and the means of its columns."""
    publication = table.publication
    document = {
        "schema": 1,
        "name": publication.name,
        "title": publication.title,
        "address": publication.address,
        "setup": publication.setup,
        "statistic": publication.statistic,
        "cells": [_cell(one) for one in table.cells],
        "baseline": publication.baseline or None,
        "means": [
            {"column": one.column, "rows": one.rows, "arithmetic": one.arithmetic, "geometric": one.geometric}
            for one in table.means
        ],
        "means_note": publication.means,
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cell(one: Implied) -> dict[str, Any]:
    cell, work = one.cell, one.work
    return {
        "version": cell.version or None,
        "task": cell.task,
        "batch": int(cell.batch) if cell.batch else None,
        "column": cell.column,
        "hardware": cell.hardware,
        "run": int(cell.run) if cell.run else None,
        "value": cell.value,
        "unit": cell.unit,
        "seconds": cell.seconds,
        "note": cell.note or None,
        "status": cell.status,
        "citable": cell.citable,
        "source": cell.source,
        "device": one.device.name if one.device else None,
        "stated": one.row.stated or None,
        "flops": work.flops if work else None,
        "bytes": work.bytes if work else None,
        "form": work.form if work else None,
        "bytes_form": (work.bytes_form or None) if work else None,
        "assumed": (work.assumed or None) if work else None,
        "why": one.row.why or None,
        "flop_rate": one.rate,
        "flop_rate_corrected": one.corrected,
        "byte_rate": one.speed,
        "floors": one.floors,
        "floor_memory": one.floor_memory,
        "roof": one.roof or None,
        "share": one.share,
        "shares": one.shares,
        "faster_than_stated": one.faster,
        "notes": [{"kind": note.kind, "says": note.says, "evidence": note.evidence} for note in one.notes],
    }
