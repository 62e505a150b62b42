"""Measure the widths of texts as they are set, and make them fit: shortened, or broken into lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from roofline.content.names.distinct import LEAST, distinct
from roofline.content.wording import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT = 7.0
SMALL = 6.0
FONT = "DejaVu Sans"

#: A number keeps its unit.
_BETWEEN_WORDS = re.compile(r" (?!(?:%|[kMGTPmµn]?(?:s|(?:B|FLOP)(?:/s)?))(?:[ ,.;:)]|$))")
#: What is measured is set without hinting, and a viewer may set it a little wider.
_SLACK = 1.01
#: A letter is hardly ever narrower than this share of its size: what is longer need not be measured.
_NARROWEST = 0.25


def line(size: float) -> float:
    """Return the height of a line of text [in]: the font's, and a little air."""
    return 1.22 * size / 72


@cache
def _sheet() -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((1, 1), dpi=300)
    FigureCanvasAgg(figure)
    return figure


@lru_cache(maxsize=20_000)
def extent(text: str, size: float = SMALL) -> tuple[float, float]:
    """Measure width and height of a line of text [in], as matplotlib sets it without hinting, whoever asks and when."""
    from matplotlib import rc_context, rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text

    if not text:
        return 0.0, 0.0
    figure = _sheet()
    drawn = Text(0, 0, text, fontproperties=FontProperties(family=FONT, size=size), parse_math=False)
    drawn.set_figure(figure)
    # A context copies all settings, which takes as long as to measure; while a figure is drawn they are those needed.
    with nullcontext() if rcParams["text.hinting"] == "none" else rc_context({"text.hinting": "none"}):
        box = drawn.get_window_extent()
    return float(box.width) / figure.dpi * _SLACK, float(box.height) / figure.dpi


def width(text: str, size: float = SMALL) -> float:
    """Measure the width of a line of text [in]."""
    return extent(text, size)[0]


def widest(texts: Sequence[str], size: float = SMALL) -> float:
    """Measure the widest of some lines [in]; 0 of none."""
    return max((width(text, size) for text in texts), default=0.0)


def level(text: str, size: float = SMALL) -> str:
    """Remove control characters, and letters that would reach into the lines above and below."""
    text = plain(text)
    if extent(text, size)[1] <= line(size):
        return text
    return "".join(letter for letter in text if extent(letter, size)[1] <= line(size))


def fit(text: str, inches: float, size: float = TEXT) -> str:
    """Cut `text` at its end to one line of at most `inches`, without control characters."""
    text = level(plain(text, 1 + int(inches * 72 / (_NARROWEST * size))), size)
    if width(text, size) <= inches:
        return text
    return text[: _kept(text, inches, size)].rstrip() + "…"


def _kept(text: str, inches: float, size: float) -> int:
    """Count the letters of a text that fit beside "…", at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(text[:middle].rstrip() + "…", size) <= inches else (low, middle - 1)
    return low


def fit_apart(texts: Sequence[str], inches: float, size: float = SMALL, by: str = "") -> list[str]:
    """Fit several names so that different ones stay different, as a table does (`distinct`); by: what they name."""
    whole = distinct(texts, None, by, lambda text: level(text, size))
    long = [name for name in whole if width(name, size) > inches]
    if not long:
        return whole
    by = by if by == "scope" else ""  # which is cut at its beginning; others are as brief as they get
    most, least = 1 + int(inches * 72 / (_NARROWEST * size)), LEAST
    while least < most:  # the letters that the widest of them has room for
        letters = (least + most + 1) // 2
        is_fitting = widest(distinct(long, letters, by), size) <= inches
        least, most = (letters, most) if is_fitting else (least, letters - 1)
    cut = dict(zip(long, distinct(long, least, by), strict=True))
    return [fit(cut.get(name, name), inches, size) for name in whole]


def wrap(text: str, inches: float, size: float = TEXT, max_lines: int = 2) -> list[str]:
    """Break `text` at spaces into up to `max_lines` lines of at most `inches`; the rest is cut at the end."""
    words = _BETWEEN_WORDS.split(level(text, size))
    lines: list[str] = []
    while words and len(lines) < max_lines - 1:
        number = 1
        while number < len(words) and width(" ".join(words[: number + 1]), size) <= inches:
            number += 1
        lines.append(fit(" ".join(words[:number]), inches, size))
        words = words[number:]
    return lines + ([fit(" ".join(words), inches, size)] if words else [])


def first_that_fits(texts: Sequence[str], inches: float, size: float = SMALL) -> str:
    """Return the first of several texts that fits, else the last one, cut."""
    return next((text for text in texts if width(text, size) <= inches), fit(texts[-1], inches, size))
