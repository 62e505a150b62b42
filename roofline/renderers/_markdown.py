"""Write tables of GitHub Markdown, and escape any text so that it is shown as it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from roofline.content.wording import plain

_SPECIAL = re.compile(r"([\\`*_\[\]<>#+|~$@&]|(?<=:)//|(?<=www)\.)")


def escape(text: str) -> str:
    """Remove markup, HTML, links and cell borders from `text`."""
    return _SPECIAL.sub(r"\\\1", plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int]) -> list[str]:
    """Write a table; its cells are escaped already. numbers: the columns that end at one place."""
    rule = ["---:" if number in numbers else "---" for number in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]
