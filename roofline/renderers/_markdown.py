"""What may come from anywhere, written so that GitHub Markdown shows it as it is."""

from __future__ import annotations

import re

from roofline.renderers._words import plain

_SPECIAL = re.compile(r"([\\`*_\[\]<>#+|~$@&]|(?<=:)//|(?<=www)\.)")


def escape(text: str) -> str:
    """`text` without markup, HTML, links and new cells."""
    return _SPECIAL.sub(r"\\\1", plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")
