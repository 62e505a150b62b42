"""JSON with stable fields (docs/check.md): seconds, FLOP, bytes; an infinite growth is null."""

from __future__ import annotations

import json
import math
from typing import Any

from roofline.core.vocabulary import GROUP_OF
from roofline.regression.check import Result
from roofline.regression.growth import Gate, GrownPlace
from roofline.renderers.check import _sentences


def render(result: Result) -> str:
    """The verdict, every gate with what grew where, and what else is different."""
    profile = result.current.profile
    document = {
        "schema": 1,
        "passed": not result.failed,
        "counts_only": result.counts_only,
        "model": profile.model,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "gates": [_gate(gate) for gate in result.gates],
        "differences": [
            {"name": name, "baseline": before, "current": after} for name, before, after in result.differences
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _gate(gate: Gate) -> dict[str, Any]:
    growth = gate.growth
    return {
        "gate": gate.measure,
        "phase": gate.phase,
        "status": gate.status,
        "baseline": gate.baseline,
        "current": gate.current,
        "growth": None if growth is None or math.isinf(growth) else growth,
        "ci95": list(gate.interval) if gate.interval else None,
        "limit": gate.limit.value,
        "absolute": gate.limit.absolute,
        "causes": [_cause(cause) for cause in gate.causes],
        "text": _sentences.sentence(gate),
    }


def _cause(cause: GrownPlace) -> dict[str, Any]:
    phase, block, op_class = cause.place or (None, None, None)
    group = GROUP_OF.get(op_class) if op_class else None  # type: ignore[call-overload]
    row = {"phase": phase, "block": block, "class": op_class, "group": group}
    return {**row, "what": cause.what, "amount": cause.amount, "ops": cause.ops}
