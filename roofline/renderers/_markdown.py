"""Escape any text so that GitHub Markdown shows it as it is."""

from __future__ import annotations

import re

from roofline.renderers._words import plain

_SPECIAL = re.compile(r"([\\`*_\[\]<>#+|~$@&]|(?<=:)//|(?<=www)\.)")


def escape(text: str) -> str:
    """Remove markup, HTML, links and cell borders from `text`."""
    return _SPECIAL.sub(r"\\\1", plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")
