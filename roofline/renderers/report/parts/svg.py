"""Draw in percent of the width, so that a picture is as wide as its page and its text as large as the page's.

Nothing is scaled: positions and widths are percentages of the element, heights and sizes of letters are pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from roofline.renderers.report.parts.html import Html, tag

#: Width of a letter [px], and of a page on a screen and on a telephone, for words that must have room.
_LETTER, _WIDE, _NARROW = 7.0, 1000.0, 330.0


def percent(share: float) -> str:
    """Write a position or width; three digits are a hundredth of a pixel."""
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"


def bar(start: float, width: float, top: float, height: float, look: str, title: str = "") -> Html:
    """Draw a rectangle from `start` on, both shares of the width; top and height in pixels."""
    about = tag("title", title) if title else None
    return tag("rect", about, x=percent(start), width=percent(max(0.0, width)), y=top, height=height, class_=look)


def text(at: float, y: float, words: object, look: str = "", anchor: str = "start") -> Html:
    """Write words at a share of the width; y in pixels is their base line."""
    return tag("text", words, x=percent(at), y=y, class_=look or None, text_anchor=anchor)


def clipped(start: float, width: float, top: float, height: float, *content: Html) -> Html:
    """Cut `content` off where its place ends: words above a short part of a bar."""
    return tag("svg", *content, x=percent(start), width=percent(max(0.0, width)), y=top, height=height)


def above(start: float, width: float, top: float, name: str, number: str) -> Html | None:
    """Write a name and a number above a part of a bar, as far as both or the number have room; less on a telephone."""
    both = f"{name} {number}"
    if not _fits(number, width * _WIDE):
        return None
    looks = "label" if _fits(number, width * _NARROW) else "label wide"
    called = tag("tspan", f"{name} ", class_=None if _fits(both, width * _NARROW) else "wide")
    return clipped(start, width, top, 16, text(0, 12, [called if _fits(both, width * _WIDE) else None, number], looks))


def _fits(words: str, room: float) -> bool:
    return _LETTER * len(words) <= room


def swatch(look: str) -> Html:
    """Draw a sample of a colour, for a row of a table."""
    box = tag("rect", width=10, height=10, class_=f"part {look}")
    return tag("svg", box, class_="swatch", width=10, height=10, aria_hidden="true")


def ticks(highest: float, about: int = 5) -> list[float]:
    """List about so many round numbers from 0 to `highest`: 1, 2 or 5 times a power of ten apart."""
    if highest <= 0:
        return [0.0]
    rough = highest / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [number * step for number in range(int(highest / step * 1.0001) + 1)]


def decades(low: float, high: float) -> Sequence[float]:
    """List the powers of ten between two numbers, ends included."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]
