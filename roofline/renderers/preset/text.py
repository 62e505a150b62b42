"""Write plain text for a terminal: a paragraph per row, the profiles left out, and the means."""

from __future__ import annotations

from roofline.content.terminal import SHEET, Page, wrapped
from roofline.published.presets.compared import PresetRows
from roofline.renderers.preset import _sentences


def render(preset_rows: PresetRows, page: Page = SHEET) -> str:
    """Write the rows in the order of the preset."""
    lines = wrapped(_sentences.opening(preset_rows), page)
    for row in preset_rows.compared:
        lines += ["", *wrapped(_sentences.head(row), page, "bold"), *wrapped(" ".join(_sentences.paragraph(row)), page)]
    for sentences in (_sentences.left_out(preset_rows), _sentences.means(preset_rows)):
        lines += ["", *(line for sentence in sentences for line in wrapped(sentence, page))] if sentences else []
    return "\n".join(lines) + "\n"
