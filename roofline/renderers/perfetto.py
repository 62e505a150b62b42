"""Write the representative step as a Chrome trace (ui.perfetto.dev), each op with mean own time, floor and bound."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from roofline.analysis.analysis import Analysis, WorkAnalysis, timed
from roofline.analysis.caches.counted import counters_on
from roofline.content import wording
from roofline.core.vocabulary import BOUNDS


def render(analysis: WorkAnalysis, by: str | None) -> str:
    """Write every op of the step; a timeline has no rows to group, so `by` changes nothing.

    Raises InputError for a step that was counted and not timed.
    """
    analysis = timed(analysis)
    events: list[dict[str, Any]] = [_name("process_name", 0, wording.subject(analysis))]
    lanes: list[float] = []  # when each lane is free again [s]
    origin = min((op.start_ns for op in analysis.profile.ops), default=0)
    for row in np.argsort([op.start_ns for op in analysis.profile.ops], kind="stable"):
        op = analysis.profile.ops[row]
        start, own_seconds = (op.start_ns - origin) * 1e-9, float(analysis.table.own[row])
        # Slices of one lane must not overlap. Ops that ran beside others get the first free lane. An op that ran alone
        # stays on the first: where the mean time of the op before it reaches past its start, it begins there.
        lane = next((n for n, free in enumerate(lanes) if free <= start), len(lanes)) if op.overlap_ns else 0
        if lane == len(lanes):
            lanes.append(0.0)
            events.append(_name("thread_name", lane, "ops" if lane == 0 else f"ops beside others {lane}"))
        start = max(start, lanes[lane])
        lanes[lane] = start + own_seconds
        events.append(_slice(analysis, int(row), lane, start, own_seconds))
    about = {"verdict": wording.verdict(analysis), "provenance": wording.provenance(analysis)}
    compilation = wording.compilation(analysis)
    if compilation:
        about["compiled"] = "; ".join(compilation)
    document = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(document, allow_nan=False) + "\n"


def _name(kind: str, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": 1, "tid": lane, "args": {"name": name}}


def _slice(analysis: Analysis, row: int, lane: int, start: float, own_seconds: float) -> dict[str, Any]:
    profile, table = analysis.profile, analysis.table
    op = profile.ops[row]
    signature = profile.signatures[op.signature]
    plain = wording.plain
    arguments: dict[str, Any] = {
        "class": analysis.op_class(op),
        "phase": plain(profile.phases[op.phase]),
        "block": plain(profile.blocks[op.block]),
        "scope": plain(profile.scopes[op.scope]),
        "shapes": plain(signature.shapes),
        "bound": "near the ridge" if table.near_ridge[row] else BOUNDS[int(table.bound[row])],
        "ceiling": plain(table.ceiling[row]) or None,
        "floor [µs]": round(float(table.floor[row]) * 1e6, 3) if not table.uncosted[row] else None,
        "matrix FLOP": signature.cost.flops,
        "vector FLOP": signature.cost.vector_flops,
        "bytes read": signature.cost.bytes_read,
        "bytes written": signature.cost.bytes_written,
    }
    if (counters := counters_on(profile, analysis.device)) is not None:
        arguments["counted bytes read"] = counters.read[row]
        arguments["counted bytes written"] = counters.written[row]
    if op.constituents:
        arguments["fused"] = [plain(f"{part.signature.name} {part.scope}") for part in analysis.constituents(op)]
    return {
        "ph": "X",
        "name": plain(signature.name),
        "cat": analysis.op_class(op),
        "pid": 1,
        "tid": lane,
        "ts": round(start * 1e6, 3),
        "dur": round(own_seconds * 1e6, 3),
        "args": arguments,
    }
