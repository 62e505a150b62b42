"""A page that GitHub shows as it is meant is shown so by the site: lists, code in tables, and the names of headings.

Pages are CommonMark. Python-Markdown, which MkDocs uses, wants four spaces below a list's item and an empty line
before a list, and shows the backslash of `a\\|b` in a table; this is mended here, so that nobody has to write for it.
"""

from __future__ import annotations

import re
from typing import Any

_ITEM = re.compile(r"^(?P<indent> *)(?P<marker>[-*+]|\d{1,9}[.)])(?P<space> +)(?=\S)")
_CODE = re.compile(r"`[^`\n]+`")
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")


def on_config(config: Any) -> Any:
    """Headings get the names that links in the pages have."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page as Python-Markdown wants it."""
    return cells(lists(markdown))


def slug(text: str, separator: str) -> str:
    """What GitHub calls a heading: "What is checked first?" is what-is-checked-first."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def lists(markdown: str) -> str:
    """What stands below an item of a list, by four spaces for each level, and an empty line before each list."""
    levels: list[int] = []  # the column where the content of each open item begins
    fence = ""
    loose = False  # whether the last item has more than one paragraph: the next one is found after an empty line only
    done: list[str] = []
    for line in markdown.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if fence:
            done.append(_shifted(line, levels))
            fence = "" if line.strip().startswith(fence) else fence
            continue
        if not line.strip():
            done.append(line)
            loose = bool(levels)
            continue
        item = _ITEM.match(line)
        after_text = bool(done and done[-1].strip())
        if item or not after_text:  # a line right below a text goes on with it, however it is indented
            while levels and indent < levels[-1]:
                levels.pop()
        if item and indent - (levels[-1] if levels else 0) < 4:
            if after_text and (loose or not (levels or done[-1].startswith(" ") or _ITEM.match(done[-1]))):
                done.append("")
            loose = False
            done.append(" " * 4 * len(levels) + line.lstrip())
            levels.append(item.end())
        else:
            opened = _FENCE.match(line)
            fence = opened.group(1) if opened else ""
            done.append(_shifted(line, levels))
    return "\n".join(done) + "\n"


def cells(markdown: str) -> str:
    """A bar in code is no end of a cell: here it needs no backslash, there it does."""
    rows = re.compile(r"^ *\|.*\|$", re.MULTILINE)
    return rows.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown)


def _shifted(line: str, levels: list[int]) -> str:
    """A line of the innermost item, with four spaces for each level in place of the columns of its markers."""
    if not levels or not line.strip():
        return line
    indent = len(line) - len(line.lstrip(" "))
    return " " * (4 * len(levels) + max(indent - levels[-1], 0)) + line.lstrip(" ")
