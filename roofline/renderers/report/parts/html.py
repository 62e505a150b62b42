"""Write HTML that no text in it can break: text is escaped unless this module made it.

    >>> tag("p", "a < b", class_="note")      # <p class="note">a &lt; b</p>

Names in a profile come from anywhere. `name` prints them on one line, without control characters and bidirectional
marks, apart from the text around them, and cut, with more of them in the title. No line ends between a number and its
unit.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from roofline.content.wording import plain
from roofline.units import BEFORE_UNIT, cut

#: Letters of a name that a title holds: what is longer is no name that anybody reads.
TITLE = 1000
#: Characters that turn the text around them (Unicode's bidirectional formatting), and controls.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "wbr"))
#: Elements that hold sentences.
_PROSE = frozenset(("p", "li", "dd", "caption", "summary"))
#: Where a name may go on in a new line: where a part of it ends.
_PART = re.compile(r"(?<=[/,_:])(?=\w)")


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """Escape `text` for an element and for a quoted attribute alike."""
    return Html(html.escape(_UNSAFE.sub("", text), quote=True))


def join(content: Any, separator: str = "") -> Html:
    """Join text, HTML, nothing, or several of them into one piece of HTML; text is escaped."""
    if content is None:
        return Html("")
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return escaped(content)
    pieces = [join(piece) for piece in content]
    return (
        pieces[0] if len(pieces) == 1 else Html(separator.join(pieces))
    )  # a section is long, and each copy takes time


def tag(element: str, *content: Any, **attributes: str | int | float | bool | None) -> Html:
    """Write an element. Attributes have "-" for "_" (`data_run`, `class_`); True is bare, None and False are absent."""
    words = [element]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        words.append(written if value is True else f'{written}="{escaped(str(value))}"')
    opened = f"<{' '.join(words)}>"
    if element in _VOID:
        return Html(opened)
    inside = BEFORE_UNIT.sub("\u00a0", join(content)) if element in _PROSE else join(content)
    return Html(f"{opened}{inside}</{element}>")


def name(text: str, width: int = 60, end: bool = False, short: str = "") -> Html:
    """Write a name from a profile, cut to `width` letters; end: its end says most, as of a scope.

    short: what stands for it instead. What is not written whole is its title.
    """
    printable = plain(text, TITLE)
    shown = short or cut(printable, width, end)
    parted = Html(_PART.sub("<wbr>", escaped(shown)))
    return tag("bdi", parted, title=printable if shown != printable else None)


def data(value: Any) -> str:
    """Write JSON for a script element: no "<" in it can end the element or begin a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
