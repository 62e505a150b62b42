"""Ceilings on logarithmic axes: which lines a device has, and how they are drawn and labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, degrees
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.floors import VECTOR_PRECISION
from roofline.core.device import Device
from roofline.renderers._words import plain
from roofline.renderers.figures import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


@dataclass(frozen=True, slots=True)
class Ceilings:
    """peaks: (name, FLOP/s), highest first; slopes: (name, byte/s), main memory first. Equal peaks are one line."""

    peaks: tuple[tuple[str, float], ...]
    slopes: tuple[tuple[str, float], ...]

    @property
    def top(self) -> float:
        """The highest peak [FLOP/s]."""
        return max((rate for _, rate in self.peaks), default=1e9)


#: A text that lies along a slope: the axes, the text, and the slope's rate.
Label = tuple["Axes", "Text", float]


def precisions(analysis: Analysis) -> list[str]:
    """The arithmetic types of the step's matrix work."""
    used = [
        s.precision.arithmetic
        for s in analysis.profile.signatures
        if s.cost.flops and s.precision is not None and s.precision.arithmetic
    ]
    return list(dict.fromkeys(used))


def ceilings(device: Device, used: Sequence[str], vector: bool) -> Ceilings:
    """The lines of a device for the precisions used: matrix peaks, the vector peak, main memory and cache."""
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
    known = device.family("cache")
    last = next((cache.level for cache in reversed(device.caches) if cache.level in known), None)
    if last is not None and vector:
        slopes.append((f"cache ({plain(last)})", known[last]))
    named = ((", ".join(names), rate) for rate, names in sorted(peaks.items(), reverse=True))
    return Ceilings(tuple(named), tuple(slopes))


def limits(axes: Axes, all_lines: Sequence[Ceilings], points: Sequence[tuple[float, float]], width: float) -> None:
    """Logarithmic axes that hold all points and ridge points, with room for the names of the ceilings.

    width: of the panel [in]; what a name takes of it is left free at the right.
    """
    ridges = [peak / rate for lines in all_lines for _, peak in lines.peaks for _, rate in lines.slopes] or [1.0]
    peaks = [peak for lines in all_lines for _, peak in lines.peaks] or [1e9]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left = min([*(x / 3 for x in xs), *(ridge / 25 for ridge in ridges)])
    right = max([*(x * 1.6 for x in xs), *(ridge * 1.6 for ridge in ridges)])
    free = min(0.6, 1.0 / (width - 0.6))
    right *= (right / left) ** (free / (1 - free))
    low = min([*(y / 3 for y in ys), *(peak / 60 for peak in peaks)])
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, max(peaks) * (max(peaks) / low) ** 0.12))
    _style.log_ticks(axes)


def draw(axes: Axes, lines: Ceilings, colour: str, style: Any, slopes_named: bool = True) -> list[Label]:
    """Peaks as level lines from the ridge on, bandwidths as slopes up to the highest peak; ridge points as rings."""
    from matplotlib.patheffects import withStroke

    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    halo = [withStroke(linewidth=1.5, foreground="white")]
    words: _style.Look = {
        "size": _style.SMALL,
        "color": colour,
        "zorder": 2.5,
        "path_effects": halo,
        "textcoords": "offset points",
    }
    steepest = max((rate for _, rate in lines.slopes), default=None)
    above = high
    for number, (name, peak) in enumerate(lines.peaks):
        start = max(left, peak / steepest) if steepest else left
        line: _style.Look = {"linewidth": 1.1 if number == 0 else 0.8, "zorder": 2}
        axes.plot([start, right], [peak, peak], color=colour, linestyle=style, **line)
        # Two names in the space of one: the lower ceiling's goes below its line.
        crowded = number > 0 and (above / peak) < (high / low) ** 0.06
        place: _style.Look = {
            "xytext": (-2, -2 if crowded else 1.5),
            "va": "top" if crowded else "bottom",
            "ha": "right",
        }
        axes.annotate(f"{name} {units.flop_rate(peak)}", (right, peak), **place, **words)
        above = peak
    turned: list[Label] = []
    for number, (name, rate) in enumerate(lines.slopes):
        start, end = max(left, low / rate), lines.top / rate
        line = {"linewidth": 1.1 if number == 0 else 0.8, "zorder": 2}
        axes.plot([start, end], [start * rate, lines.top], color=colour, linestyle=style, **line)
        for _, peak in lines.peaks:
            ring: _style.Look = {
                "marker": "o",
                "s": 12,
                "facecolor": "white",
                "edgecolor": colour,
                "linewidth": 0.8,
                "zorder": 4,
            }
            axes.scatter(peak / rate, peak, **ring)
        if slopes_named:
            # Just before the first ridge: ops of low intensity crowd the other end.
            at = 0.75 * min((peak / rate for _, peak in lines.peaks), default=end)
            place = {"xytext": (0, 2), "va": "bottom", "ha": "right", "rotation_mode": "anchor"}
            text = axes.annotate(f"{name} {units.byte_rate(rate)}", (at, at * rate), **place, **words)
            turned.append((axes, text, rate))
    return turned


def turn(figure: Figure, labels: Sequence[Label]) -> None:
    """Lay the names of slopes along them. Their angle is known only when the layout is."""
    for _, text, _ in labels:
        text.set_in_layout(False)
    figure.draw_without_rendering()
    for axes, text, rate in labels:
        left, right = axes.get_xlim()
        (x0, y0), (x1, y1) = axes.transData.transform([(left, left * rate), (right, right * rate)])
        text.set_rotation(degrees(atan2(y1 - y0, x1 - x0)))
