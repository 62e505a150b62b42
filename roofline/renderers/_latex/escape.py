"""Escape any text so that LaTeX sets it as it is."""

from __future__ import annotations

import re

from roofline.content.wording import plain

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # \textquotedbl is an error in OT1, the encoding of a document that chooses none
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "µ": r"\textmu{}",
    "…": r"\ldots{}",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}
#: Latin letters that OT1 has no way to set: each was an error of pdfLaTeX (TeX Live 2022).
_LACKING = frozenset("ąĄęĘįĮųŲſŧŦŉŀĿĸħĦþÞŋŊ«»đĐðÐ")
#: Letters without a place to break a line, in a caption: half of a column holds them.
_UNBROKEN = 16
#: Letters of a word of a caption, and of a caption: TeX measures it as one line, and that ends at 16384 pt, which is
#: 1,590 times the widest letter.
_WORD_AT_MOST, _AT_MOST = 80, 1500
_LONG_WORD = re.compile(rf"(\S{{{_WORD_AT_MOST}}})\S+")
_WORD = re.compile(rf"\S{{{_UNBROKEN}}}(?=\S)")
#: A blank of a caption at which no line ends: between a number and its unit.
_TIED = re.compile(r"(?<=\d) (?=(?:\\%|[mn]?s|\\textmu\{\}s)(?![A-Za-z]))")
_BREAK = "\u2028"  # no `plain` text has one


def letters(text: str) -> str:
    """Replace each letter that the default fonts of pdfLaTeX lack by "?": a document must compile."""
    return "".join(c if c in _SPECIAL or (ord(c) < 0x180 and c not in _LACKING) else "?" for c in plain(text))


def escape(text: str) -> str:
    """Escape `text` for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in letters(text))


def sentences(text: str) -> str:
    """Escape a caption: a word may be broken where no line holds it; a text too long for TeX to measure is cut."""
    text_cut = _LONG_WORD.sub(r"\1…", letters(text))
    text_cut = text_cut if len(text_cut) <= _AT_MOST else f"{text_cut[: _AT_MOST - 1]}…"
    parts = _WORD.sub(lambda word: f"{word[0]}{_BREAK}", text_cut).split(_BREAK)
    return _TIED.sub("~", r"\allowbreak{}".join(map(escape_letters, parts)))


def escape_letters(text: str) -> str:
    """Escape the output of `letters` for LaTeX; blanks at its ends stay."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def comment(text: str) -> str:
    """Write `text` as a comment: one line that nothing in it ends."""
    return f"% {letters(text)}"
