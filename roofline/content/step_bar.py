"""Split the bar of a step from left to right: the time under each bound, its minimum and the rest, then the gap."""

from __future__ import annotations

from typing import Literal, NamedTuple

from roofline.analysis.analysis import Analysis
from roofline.content import bounds, wording
from roofline.core.vocabulary import Bound

#: Parts of the time under a bound; the second is either, where the minimum is a range.
Part = Literal["minimum", "minimum or above it", "above it"]


class Piece(NamedTuple):
    """A stretch of the bar [s]. bound: None of the gap; part: None where nothing has a minimum."""

    name: str
    bound: Bound | None
    part: Part | None
    seconds: float


def pieces(analysis: Analysis) -> list[Piece]:
    """Split a step into pieces that add up to the wall.

    An op counts its share time. Where ops overlapped, floors are drawn in the same proportion: the bar closes.
    """
    drawn = []
    for bound, times in bounds.split(analysis).items():
        if times.seconds <= 0:
            continue
        if bound == "unknown":
            drawn.append(Piece(bound, bound, None, times.seconds))
            continue
        floor, either, above = times.pieces
        parts: tuple[tuple[Part, float], ...] = (
            ("minimum", floor),
            ("minimum or above it", either),
            ("above it", above),
        )
        drawn += [Piece(f"{bound}, {part}", bound, part, seconds) for part, seconds in parts if seconds > 0]
    if analysis.gap_told is not None:
        drawn.append(Piece(wording.gap_name(analysis), None, None, analysis.gap_told))
    return drawn
