"""Draw ceilings on logarithmic axes: the lines of a device, their look, and the places of their names."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.renderers._roofs import Extent, Peak, Roofs, Slope
from roofline.renderers.figures import _labels, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Radius of a ring at a ridge point [pt], and what a name takes above its line [in].
_RING, _NAME = 1.7, 0.165
#: Between what axes hold and their ends: so many times as much or as little.
_MARGIN = 2.5


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


class Line(NamedTuple):
    """A ceiling within the limits: its name and rate, and its ends as data."""

    text: str
    start: tuple[float, float]
    end: tuple[float, float]
    thick: bool


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
    return [*(_peak(peak) for peak in lines.peaks), *(_slope(slope) for slope in lines.slopes)]


def _peak(peak: Peak) -> str:
    return f"{peak.name} {units.flop_rate(peak.rate)}"


def _slope(slope: Slope) -> str:
    return f"{slope.name} {units.byte_rate(slope.rate)}"


def visible(lines: Roofs, within: Limits) -> list[Line]:
    """Cut the ceilings to the parts that are roofs: peaks from the first ridge on, slopes up to the highest peak."""
    roofs = []
    steepest = max((slope.rate for slope in lines.slopes), default=None)
    for number, peak in enumerate(lines.peaks):
        start = max(within.left, peak.rate / steepest) if steepest else within.left
        roofs.append(Line(_peak(peak), (start, peak.rate), (within.right, peak.rate), number == 0))
    top = max((peak.rate for peak in lines.peaks), default=within.high)
    for number, slope in enumerate(lines.slopes):
        start, end = max(within.left, within.low / slope.rate), min(within.right, top / slope.rate)
        if start < end:
            roofs.append(Line(_slope(slope), (start, start * slope.rate), (end, end * slope.rate), number == 0))
    return roofs


def draw(axes: Axes, lines: Roofs, within: Limits, colour: str, style: Any = "-", marker: str = "o") -> None:
    """Draw peaks as level lines, bandwidths as slopes, ridge points as white marks."""
    for is_thick in (True, False):  # those of one look at once: a file holds it once
        alike = [line for line in visible(lines, within) if line.thick == is_thick]
        xs, ys = ([value for line in alike for value in (line.start[n], line.end[n], nan)] for n in (0, 1))
        axes.plot(xs, ys, color=colour, linestyle=style, linewidth=1.1 if is_thick else 0.8, zorder=2)
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "linewidth": 0.8, "zorder": 4}
    if lines.ridges:
        xs, ys = map(list, zip(*lines.ridges, strict=True))
        axes.scatter(xs, ys, marker=marker, s=(2 * _RING) ** 2, **look)


def take(board: _labels.Board, axes: Axes, lines: Roofs, within: Limits) -> None:
    """Put ceilings and ridge points on a board, so that no label stands on them."""
    for line in visible(lines, within):
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
    for line in sorted(visible(lines, within), key=lambda roof: not roof.thick):
        level = line.start[1] == line.end[1]
        if not (level or slopes):
            continue
        start, end = _labels.places(axes, (line.start, line.end))
        place = board.along(line.text, tuple(start), tuple(end))
        if place is None:
            left_out.append(line.text)
        else:
            _labels.write(axes, place, _style.ink(colour))
    return left_out
