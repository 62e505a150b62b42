"""Write plain text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.content.terminal import SHEET, Page
from roofline.regression.batch import Judged
from roofline.renderers.check import _report


def render(judged: Sequence[Judged], page: Page = SHEET) -> str:
    """Write of each profile the sentence, the table of gates, the causes of growth, and other differences."""
    return _report.report(judged, page)
