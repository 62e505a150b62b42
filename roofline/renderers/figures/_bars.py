"""Draw a step as segments of a bar: by bound, floor and loss, then the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _words
from roofline.renderers.figures import _frame, _measure, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What is narrower cannot be seen, and is in no key [in].
SEEN = 0.7 / 72

#: All labels of segments, in the order of a bar and of its legend.
ORDER = (
    *(
        f"{bound}, {part}"
        for bound in ("compute", "memory", "overhead")
        for part in ("minimum", "minimum or above it", "above it")
    ),
    "unknown",
    "host time",
    "GPU idle",
)


class Piece(NamedTuple):
    """A stretch of a bar [s], its fill, and the colour of the text on it."""

    label: str
    seconds: float
    look: dict[str, Any]
    ink: str


def segments(analysis: Analysis) -> list[Piece]:
    """Split a step from left to right into pieces that add up to the wall.

    An op counts its share time. Where ops overlapped, floors are drawn in the same proportion: the bar closes.
    """
    pieces = []
    for bound, times in _tables.split(analysis).items():
        if times.seconds <= 0:
            continue
        if bound == "unknown":
            pieces.append(Piece("unknown", times.seconds, _style.lighten(bound), "black"))
            continue
        closing = times.closing
        # What is above its roof fills its bar; the caption says by how much.
        floor, reach = (min(times.seconds, part) for part in (closing.floor, closing.reach))
        # White reads on blue and green, black on orange.
        ink = "black" if bound == "memory" else "white"
        pieces.append(Piece(f"{bound}, minimum", floor, _style.solid(bound), ink))
        if reach > floor:
            pieces.append(Piece(f"{bound}, minimum or above it", reach - floor, _style.half(bound), "black"))
        pieces.append(Piece(f"{bound}, above it", times.seconds - reach, _style.lighten(bound), "black"))
    pieces.append(Piece(_words.gap_name(analysis), analysis.gap_told, _style.GAP, "black"))
    return pieces


def length(pieces: Sequence[Piece]) -> float:
    """Return the length of a bar [s]: the step, or, of a profile that is flagged for it, ops that take longer."""
    return sum(piece.seconds for piece in pieces)


def draw(
    axes: Axes,
    pieces: Sequence[Piece],
    middle: float,
    height: float,
    unit: float,
    per: float,
    whisker: tuple[float, float] | None = None,
) -> None:
    """Draw one bar, with shares of the step where they have room.

    middle, height: of the bar [in]; unit: of the axis [s]; per: inches of the axis for a second; whisker: what is drawn
    over the bar [s], where nothing is written.
    """
    begin, wall = 0.0, length(pieces)
    for piece in pieces:
        axes.barh(middle, piece.seconds / unit, left=begin / unit, height=height, clip_on=False, **piece.look)
        text = f"{100 * piece.seconds / wall:.0f} %" if wall else ""
        room = piece.seconds
        if whisker is not None:
            room = min(room, 2 * abs(begin + room / 2 - whisker[0]), 2 * abs(begin + room / 2 - whisker[1]))
            room = 0.0 if whisker[0] < begin + piece.seconds / 2 < whisker[1] else room
        if text and _measure.width(text) + 0.07 <= room * per:
            # On a hatch the text stands on a ground of its own.
            ground = piece.look["facecolor"] if piece.label.endswith("minimum") else "white"
            box = {"facecolor": ground, "pad": 0.6, "linewidth": 0} if piece.look.get("hatch") else None
            at = (begin + piece.seconds / 2) / unit
            axes.text(at, middle, text, ha="center", va="center", size=_measure.SMALL, color=piece.ink, bbox=box)
        begin += piece.seconds


def keys(runs: Sequence[Sequence[Piece]], per: float, values: bool = False) -> list[_frame.Key]:
    """Make the key of some bars, of the pieces that are wide enough to be seen in any of them.

    values: add the time of each, of one bar.
    """
    looks: dict[str, Mapping[str, Any]] = {}
    times: dict[str, float] = {}
    for pieces in runs:
        for piece in pieces:
            if piece.seconds * per >= SEEN:
                looks.setdefault(piece.label, piece.look)
                times[piece.label] = piece.seconds
    return [
        _frame.Key(f"{label} {units.seconds(times[label])}" if values else label, dict(looks[label]))
        for label in ORDER
        if label in looks
    ]
