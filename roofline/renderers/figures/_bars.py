"""A step as segments of a bar: by bound, floor and loss, then the gap."""

from __future__ import annotations

from typing import Any, NamedTuple

from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _words
from roofline.renderers.figures import _style

#: All labels of segments, in the order of a bar and of its legend.
ORDER = (
    *(f"{bound} {part}" for bound in ("compute", "memory", "overhead") for part in ("floor", "range", "loss")),
    "unknown",
    "host time",
    "gap",
)


class Piece(NamedTuple):
    """A stretch of a bar [s], how it is filled, and the colour of what is written on it."""

    label: str
    seconds: float
    look: dict[str, Any]
    ink: str


def segments(analysis: Analysis) -> list[Piece]:
    """From left to right; they add up to the wall.

    An op counts its share time. Where ops overlapped, floors are drawn in the same proportion: the bar closes.
    """
    found = []
    for bound, times in _tables.split(analysis).items():
        if times.seconds <= 0:
            continue
        if bound == "unknown":
            found.append(Piece("unknown", times.seconds, _style.lighten(bound), "black"))
            continue
        closing = times.closing
        # What is above its roof fills its bar; the caption says by how much.
        floor, reach = (min(times.seconds, part) for part in (closing.floor, closing.reach))
        # White reads on blue and green, black on orange.
        ink = "black" if bound == "memory" else "white"
        found.append(Piece(f"{bound} floor", floor, _style.solid(bound), ink))
        if reach > floor:
            found.append(Piece(f"{bound} range", reach - floor, _style.half(bound), "black"))
        found.append(Piece(f"{bound} loss", times.seconds - reach, _style.lighten(bound), "black"))
    found.append(Piece(_words.gap_name(analysis), analysis.gap_told, _style.GAP, "black"))
    return found
