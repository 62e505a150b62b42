"""Docstrings in the site: what is said of each parameter is an item of a list, and an example is code.

In the source parameters are told one after the other, "step: a callable. backend: in what it is written.", which reads
well in an editor and not in a browser.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Shapes every docstring that is read."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """After a function was read."""
        _shape(func, [one.name for one in func.parameters])

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """After a class was read, with all that it holds."""
        init = cls.members.get("__init__")
        given = [one.name for one in init.parameters] if isinstance(init, griffe.Function) else []
        _shape(cls, [*given, *cls.members])


def _shape(obj: griffe.Object, names: Collection[str]) -> None:
    if obj.docstring is not None:
        obj.docstring.value = shaped(obj.docstring.value, set(names) - {"self"})


def shaped(docstring: str, names: Collection[str]) -> str:
    """The paragraphs of a docstring, with lists of what is said of `names`, and code."""
    return "\n\n".join(_paragraph(part, names) for part in docstring.split("\n\n"))


def _paragraph(text: str, names: Collection[str]) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if not text.startswith(tuple(names)):
        return text  # as nearly all do: no pattern is made for it
    one = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    some = rf"(?:{one})(?:, (?:{one}))*"
    # In sentences, "name: what it is. other: ...", or in columns, "name   what it is".
    for begins, first, ends in ((r"(?:^|(?<=[.;:)\]])\s+)", ": ", ": "), (r"(?:^|\n)", " {2,}", " +")):
        if re.match(rf"{some}{first}", text):
            parts = re.split(rf"{begins}({some}){ends}", text)[1:]
            return "\n".join(map(_item, parts[::2], parts[1::2]))
    return text


def _item(names: str, told: str) -> str:
    return f"- `{names.replace(', ', '`, `')}`: {' '.join(told.split()).rstrip(';')}"
