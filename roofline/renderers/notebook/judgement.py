"""What a `Judgement`, profiles judged by a baseline, shows of itself."""

from __future__ import annotations

import json
from typing import Any

from roofline.regression.judged import Judgement
from roofline.renderers.check import json as json_format
from roofline.renderers.check import text as text_format
from roofline.renderers.notebook import _html


def text(found: Judgement) -> str:
    """As `roofline check`."""
    return text_format.render(found.profiles)


def html(found: Judgement) -> str:
    """The same."""
    return _html.page(_html.preformatted(text(found)))


def document(found: Judgement) -> dict[str, Any]:
    """The document of `roofline check --format json`."""
    document: dict[str, Any] = json.loads(json_format.render(found.profiles))
    return document


def columns(found: Judgement) -> dict[str, Any]:
    """The gates of every profile: its measure before and after, the growth (NaN: from nothing) and how it ended."""
    rows = [(one.file, gate) for one in found.profiles if one.result is not None for gate in one.result.gates]
    return {
        "profile": [file for file, _ in rows],
        "measure": [gate.measure for _, gate in rows],
        "phase": [gate.phase for _, gate in rows],
        "status": [gate.status for _, gate in rows],
        "baseline": [gate.baseline for _, gate in rows],
        "current": [gate.current for _, gate in rows],
        "growth": [gate.growth for _, gate in rows],
    }
