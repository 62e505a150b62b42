"""Plain text for a terminal."""

from __future__ import annotations

from roofline.regression.check import Result
from roofline.renderers.check import _report


def render(result: Result) -> str:
    """The sentence, the table of gates, what grew where, and what else is different."""
    return _report.report(result)
