"""Look at what each format must escape."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser

import set_in_latex
from target import EscapeError

#: Elements of a page that nothing of a profile may open.
ACTIVE = {"script", "iframe", "object", "embed", "base", "form", "img", "link", "foreignobject", "a", "animate", "set"}


def printable(text: str) -> None:
    """Raise EscapeError where a character acts on a terminal."""
    odd = {character for character in text if not character.isprintable() and character != "\n"}
    if odd:
        raise EscapeError(f"unprintable: {sorted(map(ascii, odd))[:5]}")


def is_json(text: str) -> None:
    """Raise where a document is none that every reader takes: NaN is no JSON."""

    def refuse(name: str) -> None:
        raise EscapeError(f"{name} is no JSON")

    json.loads(text, parse_constant=refuse)


def is_csv(text: str) -> None:
    """Raise where a cell is a formula, or rows differ in length."""
    rows = list(csv.reader(io.StringIO(text)))
    if len({len(row) for row in rows}) > 1:
        raise EscapeError("rows of several lengths")
    for cell in (cell for row in rows for cell in row):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell):
            raise EscapeError(f"a formula: {cell[:40]!r}")


class Tags(HTMLParser):
    """Collect the elements that a page opens, and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def is_markdown(text: str) -> None:
    """Raise where a name opens an element, a link or code."""
    if tags := Tags(text).tags:
        raise EscapeError(f"elements: {tags[:5]}")
    if re.search(r"(?<!\\)[`\[]", text.replace("\\\\", "")) or "://" in text:
        raise EscapeError("a link or code")


def is_page(text: str) -> None:
    """Raise where a page holds a script of somebody else's, or an address."""
    page = Tags(text)
    if page.tags.count("script") != 3:
        raise EscapeError(f"{page.tags.count('script')} scripts")
    active = ACTIVE - {"script", "a"}
    if opened := active.intersection(page.tags):
        raise EscapeError(f"elements: {sorted(opened)}")
    for name, content in page.attributes:
        if name.startswith("on") or (name in ("href", "src", "action") and not (content or "").startswith("#")):
            raise EscapeError(f"{name}={content!r}")


def is_xml(data: str | bytes) -> None:
    """Raise where XML is not well-formed, or opens an active element."""
    try:
        names = {node.tag.rpartition("}")[2].lower() for node in ElementTree.fromstring(data).iter()}
    except ElementTree.ParseError as error:
        raise EscapeError(f"no XML: {error}") from error
    if opened := (ACTIVE - {"a"}).intersection(names):
        raise EscapeError(f"elements: {sorted(opened)}")


def _is_latex(text: str) -> None:
    try:
        set_in_latex.check(text)
    except AssertionError as error:
        raise EscapeError(str(error)) from error


def _has_commands(text: str) -> None:
    """Raise where a line is a command of GitHub's that is none of ours, as a name could write one."""
    for line in text.splitlines():
        if line.startswith("::") and not re.match(r"::(error|warning) title=roofline(%3A [^:,]*)?::", line):
            raise EscapeError(f"a command: {line[:60]!r}")


CHECKS: dict[str, Callable[[str], None]] = {
    "text": printable, "json": is_json, "perfetto": is_json, "csv": is_csv, "markdown": is_markdown, "latex": _is_latex,
    "junit": is_xml, "github": _has_commands,
}  # fmt: skip


def check(name: str, text: str) -> None:
    """Raise EscapeError where a text in this format lets through what it must escape."""
    printable(text)
    CHECKS[name](text)
