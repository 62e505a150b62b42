"""Write an SVG of matplotlib's in fewer bytes: the same picture to a hundredth of a point."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

#: A tag, and in it the digits of a place beyond a hundredth of a point [1/72 in], which nobody sees and which weigh as
#: much as the others.
_TAG, _BEYOND = re.compile(r"<[^>]*>"), re.compile(r"(\d\.\d\d)\d+")
#: A group that says nothing, and what an element looks like.
_GROUP, _STYLE = re.compile(r"<g(?: id=\"[^\"]*\")?>"), re.compile(r" style=\"[^\"]*\"")
#: An element with its text, which is one piece, or a tag.
_PIECE = re.compile(r"(<(?:text|style|tspan)[^>]*>[^<]*</(?:text|style|tspan)>|<[^>]*>)")
#: What matplotlib calls a marker, a hatch or a frame that cuts off.
_NAME = re.compile(r"(?<=[\"#])[mhp][0-9a-f]{10}(?=[\")])")
_UNTURNED = re.compile(r" transform=\"rotate\(-?0 [^\"]*\"")
_PLACES = re.compile(r"(?<= d=\")[^\"]*")
#: A command of a path with its numbers, and one of these.
_COMMAND, _NUMBER = re.compile(r"([MLQCz])([^MLQCz]*)"), re.compile(r"-?[\d.]+")
#: A mark that is one open straight line, as ticks are, and where such a mark is put.
_LINE = re.compile(r"<path id=\"(\w+)\" d=\"M0 0([hv][-\d.]+)\"( style=\"[^\"]*\")/>")
_USE = re.compile(r"<use xlink:href=\"#(\w+)\" x=\"([-\d.]+)\" y=\"([-\d.]+)\"( style=\"[^\"]*\")/>")


def lighten(svg: str) -> str:
    """Drop groups that say nothing; write definitions first, styles of neighbours once, and paths by steps."""
    pieces: list[str] = []
    definitions: list[str] = []
    groups: list[bool] = []
    into = pieces
    svg = _TAG.sub(lambda tag: _BEYOND.sub(r"\1", tag[0]), svg)
    for piece in filter(None, (piece.strip("\n ") for piece in _PIECE.split(svg))):
        if piece in ("<defs>", "</defs>"):
            into = definitions if piece == "<defs>" else pieces
        elif piece == "</g>":
            into += [piece] if groups.pop() else []
        elif piece.startswith("<g ") and piece.endswith("/>"):
            continue
        elif piece.startswith("<g ") or piece == "<g>":
            groups.append(_GROUP.fullmatch(piece) is None)
            into += [piece] if groups[-1] else []
        else:
            into.append(_UNTURNED.sub("", _PLACES.sub(_by_steps, piece)))
    lines = []
    for style, alike in groupby(_join_lines(pieces, definitions), _own_style):
        elements = list(alike)
        if style and len(elements) > 1:
            elements = [f"<g{style}>", *(element.replace(style, "", 1) for element in elements), "</g>"]
        lines += elements
    below = next(number for number, line in enumerate(lines) if line.startswith("<svg")) + 1
    lines[below:below] = ["<defs>", *definitions, "</defs>"]
    names = dict.fromkeys(_NAME.findall(svg))
    short = {name: f"m{number}" for number, name in enumerate(names)}
    return _NAME.sub(lambda name: short[name[0]], "\n".join(lines))


def _own_style(piece: str) -> str:
    """Return the style of an element without content that nothing refers to; "" for everything else."""
    style = _STYLE.search(piece)
    return style[0] if style and piece.endswith("/>") and " id=" not in piece else ""


def _by_steps(places: re.Match[str]) -> str:
    """Write a path by the steps from place to place, in hundredths, so that no error adds up."""
    here = start = (0, 0)
    parts: list[str] = []
    for command, text in _COMMAND.findall(places[0]):
        numbers = [round(100 * float(number)) for number in _NUMBER.findall(text)]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        steps = [(x - here[0], y - here[1]) for x, y in points]
        if command == "z":
            parts.append("z")
            here = start
            continue
        if command == "M":
            parts.append("m" + _numbers(steps[0]) if parts else "M" + _numbers(points[0]))
            start = points[0]
        elif command == "L" and 0 in steps[0]:
            parts.append(("v" if steps[0][0] == 0 else "h") + _numbers([sum(steps[0])]))
        else:
            parts.append(command.lower() + _numbers([number for step in steps for number in step]))
        here = points[-1]
    return "".join(parts)


def _numbers(hundredths: Sequence[int]) -> str:
    """Write numbers with as few signs as tell them apart."""
    texts = [f"{number / 100:.2f}".rstrip("0").rstrip(".") for number in hundredths]
    texts = [re.sub(r"^(-?)0\.", r"\1.", text) for text in texts]
    return "".join(text if not place or text.startswith("-") else f" {text}" for place, text in enumerate(texts))


def _join_lines(pieces: Sequence[str], definitions: Sequence[str]) -> Iterator[str]:
    """Draw marks that are lines, as ticks are, as one path for all of a look that stand together."""
    lines = [mark for mark in map(_LINE.fullmatch, definitions) if mark]
    marks = {mark[1]: (mark[2], mark[3]) for mark in lines}
    for style, alike in groupby(pieces, lambda piece: _line_style(piece, marks)):
        if style:
            places = "".join(f"M{use[2]} {use[3]}{marks[use[1]][0]}" for use in map(_USE.fullmatch, alike) if use)
            yield f'<path d="{places}"{style}/>'
        else:
            yield from alike


def _line_style(piece: str, marks: Mapping[str, tuple[str, str]]) -> str:
    """Return the look of a mark that is a line and is put somewhere; "" for everything else."""
    use = _USE.fullmatch(piece)
    return use[4] if use and use[1] in marks and marks[use[1]][1] == use[4] else ""
