"""JSON with the stable fields of the command line's contract, for programs."""

from __future__ import annotations

import json

from roofline.analysis.analysis import Analysis
from roofline.renderers._document import contract


def render(analysis: Analysis, by: str | None) -> str:
    """The contract's document, in its order. ASCII, so that no name in it can act on a terminal."""
    return json.dumps(contract(analysis, by), indent=2, allow_nan=False) + "\n"
