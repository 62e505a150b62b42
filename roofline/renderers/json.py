"""Write JSON with stable fields (docs/json.md), for programs."""

from __future__ import annotations

import json

from roofline.analysis.analysis import WorkAnalysis
from roofline.content.json_document import document


def render(analysis: WorkAnalysis, by: str | None, limit: int | None = None) -> str:
    """Write the document, in its order. ASCII, so that no name in it can act on a terminal.

    limit: rows of the table by a key that are written; None: all.
    """
    return json.dumps(document(analysis, by, limit), indent=2, allow_nan=False) + "\n"
