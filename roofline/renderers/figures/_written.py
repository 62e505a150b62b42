"""Write a figure to a file with its title and caption: SVG with text as text, PDF with its fonts, PNG."""

from __future__ import annotations

import io
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

from roofline.content.wording import plain
from roofline.renderers.figures import _measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What must not be in a file for it to be the same when drawn again: dates, and the versions of what drew it.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
SUFFIXES = tuple(_METADATA)

#: For readers of an SVG that lack our font: one of nearly the same widths, and anything.
_FAMILY = re.compile(rf"(style=\"[^\"]*font-family: )'{_measure.FONT}'")
#: A tag, and in it the digits of a place beyond a hundredth of a point [1/72 in], which nobody sees and which weigh as
#: much as the others.
_TAG, _BEYOND = re.compile(r"<[^>]*>"), re.compile(r"(\d\.\d\d)\d+")
#: A group that says nothing, what an element looks like, a level piece of a path, and space between its numbers.
_GROUP, _STYLE = re.compile(r"<g(?: id=\"[^\"]*\")?>"), re.compile(r" style=\"[^\"]*\"")
_LEVEL, _SPACE = re.compile(r"M ([\d.]+) ([\d.]+)\s+L ([\d.]+) \2\s"), re.compile(r"\s*([A-Za-z])\s*")
#: An element with its text, which is one piece, or a tag.
_PIECE = re.compile(r"(<(?:text|style|tspan)[^>]*>[^<]*</(?:text|style|tspan)>|<[^>]*>)")
#: What matplotlib calls a marker, a hatch or a frame that cuts off.
_NAME = re.compile(r"(?<=[\"#])[mhp][0-9a-f]{10}(?=[\")])")
_ZERO, _UNTURNED = re.compile(r"(\.\d)0\b"), re.compile(r" transform=\"rotate\(-?0 [^\"]*\"")
_PLACES = re.compile(r"(?<= d=\")[^\"]*")


class Caption(NamedTuple):
    """A caption. title: of the figure; short: needed to read it; long: with the measurement.

    long says all that short says.
    """

    title: str
    short: str
    long: str

    def text(self, long: bool) -> str:
        """Write the caption as text."""
        return plain(f"{self.title}. {self.long if long else self.short}")


def write(figure: Figure, suffix: str, title: str, caption: str) -> bytes:
    """Return the bytes of a file with `suffix`. Save a figure under `_style.applied()`."""
    metadata = dict(_METADATA[suffix])
    if suffix == ".pdf":
        metadata |= {"Title": title, "Subject": caption}
    elif suffix == ".png":
        metadata |= {"Title": title, "Description": caption}
    stream = io.BytesIO()
    figure.savefig(stream, format=suffix[1:], metadata=metadata)
    if suffix != ".svg":
        return stream.getvalue()
    svg = _light(_TAG.sub(lambda tag: _BEYOND.sub(r"\1", tag[0]), stream.getvalue().decode()))
    svg = _FAMILY.sub(rf"\1'{_measure.FONT}', Verdana, sans-serif", svg)
    about = f'<title id="title">{escape(title)}</title>\n <desc id="caption">{escape(caption)}</desc>'
    return re.sub(
        r"<svg([^>]*)>",
        lambda opening: f'<svg{opening[1]} role="img" aria-labelledby="title caption">\n {about}',
        svg,
        count=1,
    ).encode()


def _light(svg: str) -> str:
    """Write the same picture in fewer bytes: no groups that say nothing, and the style of equal neighbours once."""
    pieces: list[str] = []
    groups: list[bool] = []
    for piece in filter(None, (piece.strip("\n ") for piece in _PIECE.split(svg))):
        if piece == "</g>":
            pieces += [piece] if groups.pop() else []
        elif piece.startswith("<g ") and piece.endswith("/>"):
            continue
        elif piece.startswith("<g ") or piece == "<g>":
            groups.append(_GROUP.fullmatch(piece) is None)
            pieces += [piece] if groups[-1] else []
        else:
            pieces.append(_UNTURNED.sub("", _PLACES.sub(_short, piece)))
    names = dict.fromkeys(_NAME.findall(svg))
    short = {name: f"m{number}" for number, name in enumerate(names)}
    lines = []
    for style, alike in groupby(pieces, _own_style):
        elements = list(alike)
        if style and len(elements) > 1:
            elements = [f"<g{style}>", *(element.replace(style, "", 1) for element in elements), "</g>"]
        lines += elements
    return _NAME.sub(lambda name: short[name[0]], "\n".join(lines))


def _short(places: re.Match[str]) -> str:
    """Write a path with as little space as tells its numbers apart, and pieces along a level by their end."""
    return _SPACE.sub(r"\1", _ZERO.sub(r"\1", _LEVEL.sub(r"M\1 \2H\3 ", places[0])))


def _own_style(piece: str) -> str:
    """Return the style of an element without content that nothing refers to; "" for everything else."""
    style = _STYLE.search(piece)
    return style[0] if style and piece.endswith("/>") and " id=" not in piece else ""
