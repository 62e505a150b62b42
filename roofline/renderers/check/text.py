"""Plain text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.regression.judged import Judged
from roofline.renderers.check import _report


def render(judged: Sequence[Judged]) -> str:
    """Of each profile the sentence, the table of gates, what grew where, and what else is different."""
    return _report.report(judged)
