"""Write JSON with stable fields (docs/json.md), for programs; times in seconds, absent is null."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import msgspec

from roofline.ranks.job import CollectiveRow, Job
from roofline.renderers.ranks import _sentences


def render(job: Job) -> str:
    """Write the document. ASCII, so that no name in it can act on a terminal."""
    straggler = job.straggler
    document = {
        "schema": 1,
        "name": _sentences.name(job),
        "ranks_of_job": job.of,
        "steps": job.steps,
        "matched": job.matched,
        "unmatched": job.unmatched,
        "ends_apart": job.ends_apart,
        "straggler": None if straggler is None else {**asdict(straggler), "kind": straggler.kind},
        "outliers": [asdict(row) for row in job.outliers],
        "ranks": [asdict(row) for row in job.ranks],
        "mean": asdict(job.mean),
        "collectives": [_collective(row) for row in job.collectives],
        "phases": [asdict(row) for row in job.phases],
        "sentences": [{"id": key, "text": text} for key, text in _sentences.sentences(job)],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _collective(row: CollectiveRow) -> dict[str, Any]:
    """Write a row with its message's fields beside its own, of which `ranks` is known of each."""
    fields = {name: value for name, value in asdict(row).items() if name != "message"}
    return {**msgspec.structs.asdict(row.message), **fields}
