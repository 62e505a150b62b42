"""Draw ceilings on logarithmic axes: the lines of a device, their look, and the places of their names."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline.content.roofs import Extent, Line, Peak, Roofs
from roofline.renderers.figures import _labels, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Radius of a ring at a ridge point [pt], and what a name takes above its line [in].
_RING, _NAME = 1.7, 0.165
#: Between what axes hold and their ends: so many times as much or as little.
_MARGIN = 2.5
#: A plane that holds every roof.
_ALL = (0.0, inf, 0.0, inf)


class Limits(NamedTuple):
    """The ends of logarithmic axes: intensity [FLOP/byte] and FLOP/s."""

    left: float
    right: float
    low: float
    high: float

    def with_room_above(self, peaks: Sequence[float], inches: float) -> Limits:
        """Make room for a name above the highest peak, on an axis of `inches`."""
        free = min(0.5, _NAME / inches)
        need = self.low * (max(peaks, default=self.low) / self.low) ** (1 / (1 - free))
        return self._replace(high=max(self.high, need))


def limits(held: Extent, roofs: Sequence[Roofs], drawn: bool) -> Limits | None:
    """Fit axes to all that they have to hold, with room for names; None where there is neither a point nor a peak.

    drawn: whether there are points; without any, more of the roofs is shown.
    """
    if not held.rates:
        return None
    ridges = [ridge for lines in roofs for ridge in lines.ridges]
    peaks = [peak.rate for lines in roofs for peak in lines.peaks]
    intensities = held.intensities or (1.0, 10.0)
    left, right = min(intensities) / _MARGIN, max(intensities) * _MARGIN
    low, high = min(held.rates) / _MARGIN, max(held.rates) * _MARGIN
    if not drawn:
        left, low = min([left, *(x / 25 for x, _ in ridges)]), min([low, *(peak / 60 for peak in peaks)])
    right = max([right, *(x * 8 for x, _ in ridges)])
    if not peaks and (rates := [slope.rate for lines in roofs for slope in lines.slopes]):
        high = max(high, 2 * max(rates) * left)  # of a device without peaks at least some of the slopes
    return Limits(left, right, low, high)


def texts(lines: Roofs) -> list[str]:
    """Write all roofs of a device."""
    return [line.text for line in lines.within(*_ALL)]


def _is_thick(lines: Roofs, line: Line) -> bool:
    """Return whether a roof is the highest peak or main memory."""
    return line.roof in (*lines.peaks[:1], *lines.slopes[:1])


def draw(axes: Axes, lines: Roofs, within: Limits, colour: str, style: Any = "-", marker: str = "o") -> None:
    """Draw peaks as level lines, bandwidths as slopes, ridge points as white marks."""
    for is_thick in (True, False):  # those of one look at once: a file holds it once
        alike = [line for line in lines.within(*within) if _is_thick(lines, line) == is_thick]
        xs, ys = ([value for line in alike for value in (line.start[n], line.end[n], nan)] for n in (0, 1))
        axes.plot(xs, ys, color=colour, linestyle=style, linewidth=1.1 if is_thick else 0.8, zorder=2)
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "linewidth": 0.8, "zorder": 4}
    if lines.ridges:
        xs, ys = map(list, zip(*lines.ridges, strict=True))
        axes.scatter(xs, ys, marker=marker, s=(2 * _RING) ** 2, **look)


def take(board: _labels.Board, axes: Axes, lines: Roofs, within: Limits) -> None:
    """Put ceilings and ridge points on a board, so that no label stands on them."""
    for line in lines.within(*within):
        start, end = _labels.places(axes, (line.start, line.end))
        board.line(tuple(start), tuple(end))
    radius = _RING / 72 + 0.01
    for x, y in _labels.places(axes, lines.ridges) if lines.ridges else ():
        board.box(x - radius, y - radius, x + radius, y + radius)


def label(
    board: _labels.Board, axes: Axes, lines: Roofs, within: Limits, colour: str, slopes: bool = True
) -> list[str]:
    """Write the names of the ceilings where there is room; returns those for which there is none."""
    left_out = []
    for line in sorted(lines.within(*within), key=lambda line: not _is_thick(lines, line)):
        level = isinstance(line.roof, Peak)
        if not (level or slopes):
            continue
        start, end = _labels.places(axes, (line.start, line.end))
        place = board.along(line.text, tuple(start), tuple(end))
        if place is None:
            left_out.append(line.text)
        else:
            _labels.write(axes, place, _style.ink(colour))
    return left_out
