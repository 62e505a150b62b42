"""Draw a step as segments of a bar: by bound, floor and loss, then the gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.content import step_bar
from roofline.core.vocabulary import GROUPS
from roofline.renderers.figures import _frame, _measure, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What is narrower cannot be seen, and is in no key [in].
SEEN = 0.7 / 72
#: Between columns of cells at the right of bars [in].
_COLUMN = 0.08

#: All labels of segments, in the order of a bar and of its legend.
ORDER = (
    *(
        f"{bound}, {part}"
        for bound in ("compute", "memory", "overhead")
        for part in ("minimum", "minimum or above it", "above it")
    ),
    "unknown",
    *GROUPS,
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
    """Fill the pieces of a step: white reads on the full blue and green, black on orange and on all that is paler."""
    fills = {
        "minimum": _style.solid,
        "minimum or above it": _style.half,
        "above it": _style.lighten,
        None: _style.lighten,
    }
    return [
        Piece(name, seconds, _style.GAP, "black")
        if bound is None
        else Piece(name, seconds, fills[part](bound), "white" if part == "minimum" and bound != "memory" else "black")
        for name, bound, part, seconds in step_bar.pieces(analysis)
    ]


def length(pieces: Sequence[Piece]) -> float:
    """Return the length of a bar [s]: the step, or, of a profile that is flagged for it, ops that take longer."""
    return sum(piece.seconds for piece in pieces)


class Bar(NamedTuple):
    """A bar of a figure: what stands above it, its pieces, its 95 % interval [s], and cells at the right of it."""

    name: str
    pieces: Sequence[Piece]
    whisker: tuple[float, float] | None = None
    cells: tuple[str, ...] = ()

    @property
    def end(self) -> float:
        """Return how far it reaches [s]."""
        return max(length(self.pieces), self.whisker[1] if self.whisker else 0.0)


class Size(NamedTuple):
    """Heights of a bar, of what stands above it, and of the air below it [in]."""

    bar: float
    name: float
    air: float

    @property
    def row(self) -> float:
        """Return the height of all of it [in]."""
        return self.bar + self.name + self.air


#: Of bars that are read by their segments.
FULL = Size(bar=0.2, name=0.115, air=0.06)


def sheet(heading: _frame.Heading, bars: Sequence[Bar], heads: Sequence[str], size: Size, width: float) -> Figure:
    """Draw bars below each other, on one axis of time, with columns of cells under their heads at the right.

    In a bar stand shares of its own step; of a single bar the key has the times.
    """
    columns = [_measure.widest([head, *(bar.cells[n] for bar in bars)]) + _COLUMN for n, head in enumerate(heads)]
    left_edge, right = 0.06, 0.14 + sum(columns)
    room = width - left_edge - right
    end = max(bar.end for bar in bars)
    unit, per = _frame.unit(end), room / end
    entries = keys([bar.pieces for bar in bars], per, values=len(bars) == 1)
    entries += [_frame.Key("95 % interval", _style.WHISKER, "line")] if any(bar.whisker for bar in bars) else []
    arranged = _frame.keys(entries, width)
    high = size.row * len(bars) + 0.02
    top = _frame.EDGE + heading.height + 0.02 + (_measure.line(_measure.SMALL) if heads else 0.0)
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.02 + arranged.height)
    heading.draw(fig)
    axes = _frame.bars(fig, left_edge, top, room, high)
    for number, bar in enumerate(bars):
        above = number * size.row + size.name
        axes.text(0, above - 0.01, bar.name, ha="left", va="bottom", size=_measure.SMALL)
        draw(axes, bar, above + size.bar / 2, size.bar, unit.seconds, per)
    at = width - 0.06
    for n, head in reversed(list(enumerate(heads))):
        _frame.write(fig, at, top - _measure.line(_measure.SMALL), [head], _measure.SMALL, ha="right")
        for number, bar in enumerate(bars):
            middle = top + number * size.row + size.name + size.bar / 2 - _measure.line(_measure.SMALL) / 2
            _frame.write(fig, at, middle, [bar.cells[n]], _measure.SMALL, ha="right")
        at -= columns[n]
    axes.set_xlim(0, end / unit.seconds)
    _frame.linear(axes.xaxis, room)
    below = top + high + _frame.TICKS
    _frame.name_below(fig, left_edge + room / 2, f"time of one step [{unit.name}]", below)
    _frame.draw_keys(fig, arranged, below + _frame.LABEL + 0.02)
    return fig


def draw(axes: Axes, bar: Bar, middle: float, height: float, unit: float, per: float) -> None:
    """Draw one bar, with shares of the step where they have room and nothing else is drawn.

    middle, height: of the bar [in]; unit: of the axis [s]; per: inches of the axis for a second.
    """
    begin, wall, whisker = 0.0, length(bar.pieces), bar.whisker
    for piece in bar.pieces:
        axes.barh(middle, piece.seconds / unit, left=begin / unit, height=height, clip_on=False, **piece.look)
        text = f"{100 * piece.seconds / wall:.0f} %" if wall else ""
        room = piece.seconds
        if whisker is not None:
            room = min(room, 2 * abs(begin + room / 2 - whisker[0]), 2 * abs(begin + room / 2 - whisker[1]))
            room = 0.0 if whisker[0] < begin + piece.seconds / 2 < whisker[1] else room
        if text and _measure.width(text) + 0.07 <= room * per:
            # On a hatch the text stands on a ground of its own, of a full colour the same.
            ground = piece.look["facecolor"] if piece.look["edgecolor"] == "white" else "white"
            box = {"facecolor": ground, "pad": 0.6, "linewidth": 0} if piece.look.get("hatch") else None
            at = (begin + piece.seconds / 2) / unit
            axes.text(at, middle, text, ha="center", va="center", size=_measure.SMALL, color=piece.ink, bbox=box)
        begin += piece.seconds
    for colour, thick in (("white", 1.8), ("black", 0.7)) if whisker is not None else ():
        ends = [end / unit for end in whisker or ()]
        axes.plot(ends, [middle] * 2, color=colour, linewidth=thick, zorder=4)
        axes.plot(ends, [middle] * 2, color=colour, linestyle="", marker="|", markersize=3, zorder=4)


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
