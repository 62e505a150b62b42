"""Show a figure that was asked for."""

from __future__ import annotations

from roofline.renderers.notebook import _html


def html(drawing: bytes, caption: str) -> str:
    """Embed a drawing as SVG, with its caption under it."""
    return _html.page(_html.image(drawing, caption), _html.caption(caption))
