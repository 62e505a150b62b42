"""Plain text for a terminal: a paragraph per row, what was left out, and the means."""

from __future__ import annotations

from roofline.published.presets.compared import PresetRows
from roofline.renderers._terminal import SHEET, Page, wrapped
from roofline.renderers.preset import _told


def render(found: PresetRows, page: Page = SHEET) -> str:
    """The rows in the order of the preset."""
    lines = wrapped(_told.opening(found), page)
    for row in found.compared:
        lines += ["", *wrapped(_told.head(row), page, "bold"), *wrapped(" ".join(_told.paragraph(row)), page)]
    for more in (_told.left_out(found), _told.means(found)):
        lines += ["", *(line for words in more for line in wrapped(words, page))] if more else []
    return "\n".join(lines) + "\n"
