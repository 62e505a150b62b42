"""Write JSON with stable fields (docs/json.md), for programs."""

from __future__ import annotations

import json

from roofline.analysis.analysis import WorkAnalysis
from roofline.content.json_document import document


def render(analysis: WorkAnalysis, by: str | None) -> str:
    """Write the document, in its order. ASCII, so that no name in it can act on a terminal."""
    return json.dumps(document(analysis, by), indent=2, allow_nan=False) + "\n"
