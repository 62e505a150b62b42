"""Place labels of lines: the first of many places that is clear of everything drawn, or none.

All lengths are inches from the lower left corner of the figure. A list of rectangles, some of them turned, holds
everything on the figure: boxes of texts and markers, and lines with their thickness. A label is one more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import atan2, cos, degrees, hypot, sin
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofline.renderers.figures import _measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The corners of a rectangle in turn; shape (4, 2).
Corners = NDArray[np.float64]
Point = tuple[float, float]

#: Between a line and the label that lies along it, the same where a mark on the line is in the way, and around all
#: other things [in].
_BESIDE, _FARTHER, _AIR = 0.022, 0.05, 0.012
#: Where along a line a label is tried, from its end to its beginning.
_TRIED = 25
#: How far from a marker a label is tried [in], and the sides of it.
_AWAY = (_AIR, *(0.05 * number for number in range(2, 13)))
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


class Place(NamedTuple):
    """The beginning of a text (its lower left corner, before it is turned), and its angle [rad].

    lead: the ends of a line from the text to what it names.
    """

    text: str
    at: Point
    angle: float
    lead: tuple[Point, Point] | None = None


@dataclass(slots=True)
class Board:
    """A panel and the rectangles in it, those of texts apart. window: left, bottom, right, top."""

    window: tuple[float, float, float, float]
    rectangles: list[Corners] = field(default_factory=list)
    texts: list[Corners] = field(default_factory=list)

    def box(self, left_edge: float, bottom: float, right: float, top: float) -> None:
        """Take the place of an upright rectangle: a marker, a text."""
        self.rectangles.append(
            np.asarray([(left_edge, bottom), (right, bottom), (right, top), (left_edge, top)], np.float64)
        )

    def line(self, start: Point, end: Point, thickness: float = 0.015) -> None:
        """Take the place of a straight line."""
        if start != end:
            self.rectangles.append(_stroke(start, end, thickness))

    def is_clear(self, corners: Corners) -> bool:
        """Return whether a rectangle lies in the window and on nothing."""
        return self.first_clear(corners[None]) is not None

    def first_clear(self, candidates: Corners) -> int | None:
        """Return the number of the first of some rectangles, shape (n, 4, 2), that is in the window and on nothing."""
        left_edge, bottom, right, top = self.window
        low, high = candidates.min(axis=1), candidates.max(axis=1)
        is_clear = ((low >= (left_edge, bottom)) & (high <= (right, top))).all(axis=1)
        if self.rectangles and is_clear.any():
            is_clear[is_clear] = apart(candidates[is_clear], np.asarray(self.rectangles)).all(axis=1)
        return int(is_clear.argmax()) if is_clear.any() else None

    def along(self, text: str, start: Point, end: Point, size: float = _measure.SMALL) -> Place | None:
        """Take a place for a text along a line; None where there is none.

        start, end: of the visible part of the line, from left to right. Above it is tried before below, its end before
        its beginning. Along a level line half of the text may stand before its beginning.
        """
        angle = atan2(end[1] - start[1], end[0] - start[0])
        u, v = (cos(angle), sin(angle)), (-sin(angle), cos(angle))
        wide, high = _measure.extent(text, size)
        if angle == 0:
            start = (start[0] - wide / 2, start[1])
        room = hypot(end[0] - start[0], end[1] - start[1]) - wide - 2 * _AIR
        if room < 0:
            return None
        tried = [
            (start[0] + u[0] * along + v[0] * distance, start[1] + u[1] * along + v[1] * distance)
            for along in (_AIR + room * (1 - step / (_TRIED - 1)) for step in range(_TRIED))
            for distance in (_BESIDE, -_BESIDE - high, _FARTHER, -_FARTHER - high)
        ]
        first = self.first_clear(np.asarray(tried)[:, None] + _grown((0.0, 0.0), wide, high, angle))
        return None if first is None else self._taken(Place(text, tried[first], angle), wide, high)

    def beside(self, text: str, middle: Point, radius: float, size: float = _measure.SMALL) -> Place | None:
        """Take a clear place for a text around a marker, the nearer the better, with a line to its middle.

        The line may cross markers, and no text. None where there is no such place.
        """
        wide, high = _measure.extent(text, size)
        for distance in _AWAY:
            for right, up in _SIDES:
                reach = radius + distance
                at = (middle[0] + right * (reach + wide / 2) - wide / 2, middle[1] + up * (reach + high / 2) - high / 2)
                near = (min(max(middle[0], at[0]), at[0] + wide), min(max(middle[1], at[1]), at[1] + high))
                lead = _stroke(near, middle)
                if self.is_clear(rectangle(at, wide, high, 0.0)) and self._leads_past(lead):
                    self.rectangles.append(lead)
                    return self._taken(Place(text, at, 0.0, (near, middle)), wide, high)
        return None

    def inside(self, text: str, size: float = _measure.SMALL) -> Place | None:
        """Take a clear place for a text that belongs to the whole panel, the nearest to its middle."""
        wide, high = _measure.extent(text, size)
        left_edge, bottom, right, top = self.window
        free, steps = (right - left_edge - wide, top - bottom - high), range(9)
        tried = sorted(((n, m) for n in steps for m in steps), key=lambda at: (at[0] - 4) ** 2 + (at[1] - 4) ** 2)
        for across, up in tried:
            at = (left_edge + free[0] * across / 8, bottom + free[1] * up / 8)
            if self.is_clear(rectangle(at, wide, high, 0.0)):
                return self._taken(Place(text, at, 0.0), wide, high)
        return None

    def _leads_past(self, lead: Corners) -> bool:
        """Return whether a line crosses no text."""
        return not self.texts or bool(apart(lead[None], np.asarray(self.texts)).all())

    def _taken(self, place: Place, wide: float, high: float) -> Place:
        corners = rectangle(place.at, wide, high, place.angle)
        self.rectangles.append(corners)
        self.texts.append(corners)
        return place


def rectangle(at: Point, wide: float, high: float, angle: float) -> Corners:
    """Turn a rectangle with its lower left corner at `at` about that by an angle [rad]."""
    u, v = np.asarray([cos(angle), sin(angle)]), np.asarray([-sin(angle), cos(angle)])
    corner = np.asarray(at, np.float64)
    return np.stack([corner, corner + wide * u, corner + wide * u + high * v, corner + high * v])


def _stroke(start: Point, end: Point, thickness: float = 0.015) -> Corners:
    """Return the rectangle of a straight line."""
    angle = atan2(end[1] - start[1], end[0] - start[0])
    across = (thickness / 2 * sin(angle), -thickness / 2 * cos(angle))
    length = hypot(end[0] - start[0], end[1] - start[1])
    return rectangle((start[0] + across[0], start[1] + across[1]), length, thickness, angle)


def _grown(at: Point, wide: float, high: float, angle: float) -> Corners:
    """Add air around a label, less than there is to its own line."""
    air = _AIR
    corner = (at[0] - air * (cos(angle) - sin(angle)), at[1] - air * (sin(angle) + cos(angle)))
    return rectangle(corner, wide + 2 * air, high + 2 * air, angle)


def apart(candidates: Corners, rectangles: Corners) -> NDArray[np.bool_]:
    """Test whether each of m rectangles and each of n others, shape (…, 4, 2), have no point in common: shape (m, n).

    Two of them are apart where they are on a line across a side of either (the theorem of separating axes).
    """
    ours, theirs = candidates[:, None], rectangles[None]
    gaps = [
        (mine.min(axis=3) > other.max(axis=3)) | (mine.max(axis=3) < other.min(axis=3))
        for sides in (_sides(ours), _sides(theirs))
        for mine, other in [[sides @ corners.swapaxes(2, 3) for corners in (ours, theirs)]]
    ]
    is_apart: NDArray[np.bool_] = gaps[0].any(axis=2) | gaps[1].any(axis=2)
    return is_apart


def _sides(rectangles: Corners) -> Corners:
    """Return two sides of each, from one corner: shape (…, 2, 2)."""
    return rectangles[..., [1, 3], :] - rectangles[..., [0], :]


def window(axes: Axes) -> tuple[float, float, float, float]:
    """Return left, bottom, right and top of axes."""
    wide, high = _figure(axes).get_size_inches()
    box = axes.get_position()
    return float(box.x0 * wide), float(box.y0 * high), float(box.x1 * wide), float(box.y1 * high)


def places(axes: Axes, points: Sequence[Point]) -> NDArray[np.float64]:
    """Place points of data on the figure; shape (n, 2)."""
    dots: NDArray[np.float64] = np.asarray(axes.transData.transform(np.asarray(points, np.float64).reshape(-1, 2)))
    return dots / _figure(axes).dpi


def write(axes: Axes, place: Place, colour: tuple[float, float, float]) -> None:
    """Set a label of some axes, on the figure."""
    look: dict[str, Any] = {"ha": "left", "va": "bottom", "rotation_mode": "anchor", "size": _measure.SMALL}
    figure = _figure(axes)
    look |= {"rotation": degrees(place.angle), "color": colour, "transform": figure.dpi_scale_trans}
    figure.text(*place.at, place.text, **look)
    if place.lead is not None:
        from matplotlib.lines import Line2D

        line: dict[str, Any] = {"linewidth": 0.5, "marker": ".", "markersize": 2.5, "markeredgewidth": 0.0}
        xs, ys = zip(*place.lead, strict=True)
        figure.add_artist(Line2D(xs, ys, color=colour, markevery=[1], transform=figure.dpi_scale_trans, **line))


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure
