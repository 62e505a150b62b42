"""What a page shows to be typed: files to write, and commands with what they print.

A fence with a title is a file. In a fence `console`, `$ roofline ...` is a command and what follows it its output, in
which a line `...` stands for any lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
_LABEL = re.compile(r"^(?P<label>[A-Za-z][A-Za-z .+()/_]*?)(?:  .*)?$")
_RULES = re.compile(r"[─\s]+")


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the reader types; shown: its output in the page, between the lines that are left out."""

    words: tuple[str, ...]
    shown: tuple[str, ...]


def typed(page: Path) -> Iterator[File | Command]:
    """What a reader of the page does, in order."""
    for fence in _FENCE.finditer(page.read_text(encoding="utf-8")):
        if fence["title"]:
            yield File(fence["title"], fence["text"])
        elif fence["language"] == "console":
            for told in re.split(r"^\$ ", fence["text"], flags=re.MULTILINE)[1:]:
                line, _, output = told.partition("\n")
                parts = re.split(r"^\.\.\.\n", output, flags=re.MULTILINE)
                yield Command(tuple(shlex.split(line)), tuple(part for part in parts if part.strip()))


def flat(text: str) -> str:
    """A text without its lines, columns and rules: another width of the terminal is no other output."""
    return _RULES.sub(" ", text).strip()


def labels(shown: str) -> list[str]:
    """What is the same at each run of what is measured: how rows of tables are called, and lines without a number."""
    found = (_LABEL.match(line) for line in shown.splitlines())
    return [match["label"] for match in found if match]
