"""Write JSON with stable fields (docs/published.md): seconds, FLOP, bytes, and their rates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from roofline.published.implied import Implied
from roofline.published.means import speedups
from roofline.published.publication import Publication


def render(publication: Publication, cells: Sequence[Implied]) -> str:
    """Write the publication, its cells in order, and the means of its columns."""
    document = {
        "schema": 1,
        "name": publication.name,
        "title": publication.title,
        "address": publication.address,
        "setup": publication.setup,
        "statistic": publication.statistic,
        "cells": [_cell(figure) for figure in cells],
        "baseline": publication.baseline or None,
        "means": [
            {"column": mean.column, "rows": mean.rows, "arithmetic": mean.arithmetic, "geometric": mean.geometric}
            for mean in speedups(publication)
        ],
        "means_note": publication.means,
    }
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _cell(figure: Implied) -> dict[str, Any]:
    cell, work = figure.cell, figure.work
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
        "device": figure.device.name if figure.device else None,
        "stated": figure.row.stated or None,
        "flops": work.flops if work else None,
        "bytes": work.bytes if work else None,
        "form": work.form if work else None,
        "bytes_form": (work.bytes_form or None) if work else None,
        "assumed": (work.assumed or None) if work else None,
        "why": figure.row.why or None,
        "flop_rate": figure.rate,
        "flop_rate_corrected": figure.corrected,
        "byte_rate": figure.speed,
        "floors": figure.floors,
        "floor_memory": figure.floor_memory,
        "roof": figure.roof or None,
        "share": figure.share,
        "shares": figure.shares,
        "faster_than_stated": figure.faster,
        "notes": [{"kind": note.kind, "says": note.says, "evidence": note.evidence} for note in figure.notes],
    }
