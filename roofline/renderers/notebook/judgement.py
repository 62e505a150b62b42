"""Show a `Judgement`, profiles judged by a baseline."""

from __future__ import annotations

import json
from typing import Any

from roofline.regression.batch import Judgement
from roofline.renderers.check import json as json_format
from roofline.renderers.check import text as text_format
from roofline.renderers.notebook import _html


def text(judgement: Judgement) -> str:
    """Write the text of `roofline check`."""
    return text_format.render(judgement.profiles)


def html(judgement: Judgement) -> str:
    """Write the same text as HTML."""
    return _html.page(_html.preformatted(text(judgement)))


def document(judgement: Judgement) -> dict[str, Any]:
    """Return the document of `roofline check --format json`."""
    document: dict[str, Any] = json.loads(json_format.render(judgement.profiles))
    return document


def columns(judgement: Judgement) -> dict[str, Any]:
    """Return the gates of every profile: measure before and after, the growth (NaN: from nothing), the outcome."""
    rows = [
        (profile.file, gate)
        for profile in judgement.profiles
        if profile.result is not None
        for gate in profile.result.gates
    ]
    return {
        "profile": [file for file, _ in rows],
        "measure": [gate.measure for _, gate in rows],
        "phase": [gate.phase for _, gate in rows],
        "status": [gate.status for _, gate in rows],
        "baseline": [gate.baseline for _, gate in rows],
        "current": [gate.current for _, gate in rows],
        "growth": [gate.growth for _, gate in rows],
    }
