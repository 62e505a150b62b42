"""GitHub Markdown for a write-up: a paragraph per row, what was left out, and the means."""

from __future__ import annotations

from roofline.published.presets.compared import PresetRows
from roofline.renderers._markdown import escape
from roofline.renderers.preset import _told


def render(found: PresetRows) -> str:
    """The rows in the order of the preset."""
    lines = [escape(_told.opening(found))]
    for row in found.compared:
        lines += ["", f"**{escape(_told.head(row))}.** {escape(' '.join(_told.paragraph(row)))}"]
    for more in (_told.left_out(found), _told.means(found)):
        lines += ["", *(f"- {escape(words)}" for words in more)] if more else []
    return "\n".join(lines) + "\n"
