"""Write JSON with stable fields (docs/check.md): seconds, FLOP, bytes; an infinite growth is null."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from roofline.core.vocabulary import GROUP_OF
from roofline.regression.batch import Judged
from roofline.regression.growth import Gate, GrownPlace
from roofline.renderers.check import _sentences


def render(judged: Sequence[Judged]) -> str:
    """Write the verdict of one profile, every gate with its causes, and other differences; of several a list."""
    documents = [_profile(profile) for profile in judged]
    if len(judged) == 1:
        document = {"schema": 1, **documents[0]}
    else:
        document = {"schema": 1, "passed": all(verdict["passed"] for verdict in documents), "profiles": documents}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _profile(judged: Judged) -> dict[str, Any]:
    result = judged.result
    if result is None:
        code = judged.error.exit_code if judged.error else None
        return {"file": judged.file, "passed": None, "error": str(judged.error), "code": code}
    profile = result.current.profile
    return {
        "file": judged.file,
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
