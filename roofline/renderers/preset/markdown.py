"""Write GitHub Markdown: a paragraph per row, the profiles left out, and the means."""

from __future__ import annotations

from roofline.published.presets.compared import PresetRows
from roofline.renderers._markdown import escape
from roofline.renderers.preset import _sentences


def render(preset_rows: PresetRows) -> str:
    """Write the rows in the order of the preset."""
    lines = [escape(_sentences.opening(preset_rows))]
    for row in preset_rows.compared:
        lines += ["", f"**{escape(_sentences.head(row))}.** {escape(' '.join(_sentences.paragraph(row)))}"]
    for sentences in (_sentences.left_out(preset_rows), _sentences.means(preset_rows)):
        lines += ["", *(f"- {escape(sentence)}" for sentence in sentences)] if sentences else []
    return "\n".join(lines) + "\n"
