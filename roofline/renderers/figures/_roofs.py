"""Draw ceilings on logarithmic axes: the lines of a device, their look, and the places of their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.analysis.floors import VECTOR_PRECISION
from roofline.core.device import Device
from roofline.renderers._words import plain
from roofline.renderers.figures import _labels, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Radius of a ring at a ridge point [pt], and what a name takes above its line [in].
_RING, _NAME = 1.7, 0.165


@dataclass(frozen=True, slots=True)
class Ceilings:
    """peaks: (name, FLOP/s), highest first; slopes: (name, byte/s), main memory first. Equal peaks are one line."""

    peaks: tuple[tuple[str, float], ...]
    slopes: tuple[tuple[str, float], ...]

    @property
    def labels(self) -> list[str]:
        """Write all of them: "fp32 100 GFLOP/s"."""
        return [f"{name} {units.flop_rate(rate)}" for name, rate in self.peaks] + [
            f"{name} {units.byte_rate(rate)}" for name, rate in self.slopes
        ]

    @property
    def ridges(self) -> list[tuple[float, float]]:
        """Return the points where peaks and slopes meet: (FLOP/byte, FLOP/s)."""
        return [(peak / rate, peak) for _, rate in self.slopes for _, peak in self.peaks]


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


def precisions(analysis: WorkAnalysis) -> list[str]:
    """List the arithmetic types of the step's matrix work."""
    used = [
        s.precision.arithmetic
        for s in analysis.profile.signatures
        if s.cost.flops and s.precision is not None and s.precision.arithmetic
    ]
    return list(dict.fromkeys(used))


def ceilings(device: Device, used: Sequence[str], vector: bool) -> Ceilings:
    """Collect the lines of a device for the precisions used: matrix peaks, the vector peak, main memory and cache."""
    peaks: dict[float, list[str]] = {}
    for name in used:
        rate = device.rate(f"matrix.{name}")
        if rate is not None:
            peaks.setdefault(rate, []).append(plain(name))
    if vector:
        kinds = dict.fromkeys(VECTOR_PRECISION.get(name, name) for name in used) or {"fp32": None}
        for name in kinds:
            rate = device.rate(f"vector.{name}") or device.rate("vector.fp32")
            if rate is not None:
                peaks.setdefault(rate, []).append("vector" if len(kinds) == 1 else f"vector {plain(name)}")
    slopes = []
    if device.bandwidth is not None:
        slopes.append(("DRAM", device.bandwidth))
    cache_rates = device.family("cache")
    last = next((cache.level for cache in reversed(device.caches) if cache.level in cache_rates), None)
    if last is not None and vector:
        slopes.append(("last-level cache" if last == "llc" else f"{plain(last.upper())} cache", cache_rates[last]))
    named = ((", ".join(dict.fromkeys(names)), rate) for rate, names in sorted(peaks.items(), reverse=True))
    return Ceilings(tuple(named), tuple(slopes))


def limits(lines: Sequence[Ceilings], points: Sequence[tuple[float, float]]) -> Limits | None:
    """Fit axes to all points and all ridge points, with room for names; None where there are neither."""
    ridges = [ridge for ceilings_of_device in lines for ridge in ceilings_of_device.ridges]
    peaks = [peak for ceilings_of_device in lines for _, peak in ceilings_of_device.peaks]
    if not points and not peaks:
        return None
    xs, ys = [x for x, _ in points], [y for _, y in points]
    lowest_intensity = min([*(x / 2.5 for x in xs), *(x / 25 for x, _ in ridges)], default=0.1)
    right = max([*(x * 2.5 for x in xs), *(x * 8 for x, _ in ridges)], default=100.0)
    low = min([*(y / 2.5 for y in ys), *(peak / 60 for peak in peaks)])
    high = max([*(y * 2.5 for y in ys), *(peak * 2.0 for peak in peaks)])
    if not peaks and (rates := [rate for ceilings_of_device in lines for _, rate in ceilings_of_device.slopes]):
        high = max(high, 2 * max(rates) * lowest_intensity)  # of a device without peaks at least some of the slopes
    return Limits(lowest_intensity, right, low, high)


def visible(lines: Ceilings, within: Limits) -> list[Line]:
    """Cut the ceilings to the parts that are roofs: peaks from the first ridge on, slopes up to the highest peak."""
    roofs = []
    steepest = max((rate for _, rate in lines.slopes), default=None)
    for number, (name, peak) in enumerate(lines.peaks):
        start = max(within.left, peak / steepest) if steepest else within.left
        roofs.append(Line(f"{name} {units.flop_rate(peak)}", (start, peak), (within.right, peak), number == 0))
    top = max((peak for _, peak in lines.peaks), default=within.high)
    for number, (name, rate) in enumerate(lines.slopes):
        start, end = max(within.left, within.low / rate), min(within.right, top / rate)
        if start < end:
            text = f"{name} {units.byte_rate(rate)}"
            roofs.append(Line(text, (start, start * rate), (end, end * rate), number == 0))
    return roofs


def draw(axes: Axes, lines: Ceilings, within: Limits, colour: str, style: Any = "-", marker: str = "o") -> None:
    """Draw peaks as level lines, bandwidths as slopes, ridge points as white marks."""
    for line in visible(lines, within):
        xs, ys = zip(line.start, line.end, strict=True)
        axes.plot(xs, ys, color=colour, linestyle=style, linewidth=1.1 if line.thick else 0.8, zorder=2)
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": colour, "linewidth": 0.8, "zorder": 4}
    for ridge in lines.ridges:
        axes.scatter(*ridge, marker=marker, s=(2 * _RING) ** 2, **look)


def take(board: _labels.Board, axes: Axes, lines: Ceilings, within: Limits) -> None:
    """Put ceilings and ridge points on a board, so that no label stands on them."""
    for line in visible(lines, within):
        start, end = _labels.places(axes, (line.start, line.end))
        board.line(tuple(start), tuple(end))
    radius = _RING / 72 + 0.01
    for x, y in _labels.places(axes, lines.ridges) if lines.ridges else ():
        board.box(x - radius, y - radius, x + radius, y + radius)


def label(
    board: _labels.Board, axes: Axes, lines: Ceilings, within: Limits, colour: str, slopes: bool = True
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
