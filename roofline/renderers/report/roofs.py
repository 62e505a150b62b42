"""Find the roofs above the ops of a step, and the axes that hold both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roofline.core.device import Device
from roofline.renderers._words import plain
from roofline.renderers.report.points import ALL, COLD, COLD_HIGH, COUNTED, Points


@dataclass(frozen=True, slots=True)
class Peak:
    """A rate that no op exceeds [FLOP/s]. precisions: whose ceiling it is; matrix: of products, else of vector work."""

    name: str
    rate: float
    precision: str
    matrix: bool


@dataclass(frozen=True, slots=True)
class Slope:
    """A bandwidth [byte/s]. levels: choices of memory that it is the roof of."""

    name: str
    rate: float
    levels: tuple[str, ...]


def peaks(device: Device, precisions: Iterable[str]) -> list[Peak]:
    """List the compute ceilings of some precisions, the highest first."""
    compute_peaks = []
    for precision in dict.fromkeys(precisions):
        for family in ("matrix", "vector"):
            rate = device.rate(f"{family}.{precision}") if precision else None
            if rate is not None:
                compute_peaks.append(Peak(f"{family} {plain(precision)}", rate, precision, family == "matrix"))
    return sorted(compute_peaks, key=lambda peak: -peak.rate)


def slopes(device: Device) -> list[Slope]:
    """List main memory's bandwidth, and that of each cache where it is known."""
    bandwidths = []
    if device.bandwidth is not None:
        bandwidths.append(Slope("main memory", device.bandwidth, (ALL, COLD, COLD_HIGH, COUNTED)))
    for level, rate in device.family("cache").items():
        bandwidths.append(Slope(f"{plain(level)} cache", rate, (f"cache.{level}",)))
    return bandwidths


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis: where values stand, as shares of its length between two margins."""

    low: float
    high: float
    near: float = 0.05
    far: float = 0.97

    def share(self, value: float) -> float:
        """Place a value on the axis, from 0 to 1."""
        length = math.log(self.high / self.low)
        return self.near + (self.far - self.near) * math.log(value / self.low) / length

    def value(self, share: float) -> float:
        """Return the value at a place of the axis."""
        return float(self.low * (self.high / self.low) ** ((share - self.near) / (self.far - self.near)))


@dataclass(frozen=True, slots=True)
class Plane:
    """The axes of all runs: intensity [FLOP/byte], FLOP/s (from below), and byte/s of ops without FLOP."""

    x: Axis
    y: Axis
    bandwidth: Axis


def plane(devices: Sequence[Device], points_of_runs: Sequence[Points]) -> Plane:
    """Fit the axes to every point and tick, every peak and the ridge points, whichever bytes are chosen."""
    placed = [point for plotted in points_of_runs for point in plotted.placed]
    tops = [
        peak.rate
        for device, plotted in zip(devices, points_of_runs, strict=True)
        for peak in peaks(device, used(plotted))
    ]
    rates = [slope.rate for device in devices for slope in slopes(device)]
    xs = [x for point in placed for x in point.intensity.values() if x]
    xs += [tick.intensity for plotted in points_of_runs for tick in plotted.ticks]
    ridges = [top / rate for top in tops for rate in rates]
    ys = [point.rate for point in placed]
    bytes_per_second = [point.traffic for plotted in points_of_runs for point in plotted.flopless if point.traffic > 0]
    return Plane(
        x=_axis([*xs, *ridges], 3.0),
        y=_axis([*ys, *tops], 2.0, near=0.07, far=0.95),
        bandwidth=_axis([*bytes_per_second, *rates], 2.0),
    )


def used(plotted: Points) -> list[str]:
    """List the precisions of the points, those of most time first; of ops without times those of most work."""
    if plotted.arithmetic:
        return list(plotted.arithmetic)
    seconds: dict[str, float] = {}
    for point in plotted.placed:
        if point.precision:
            seconds[point.precision] = seconds.get(point.precision, 0.0) + point.seconds
    return sorted(seconds, key=lambda precision: -seconds[precision])


def _axis(values: Sequence[float], room: float, near: float = 0.05, far: float = 0.97) -> Axis:
    low, high = (min(values), max(values)) if values else (1.0, 100.0)
    low, high = low / room, high * room
    if high / low < 100:  # two decades at least, or there is no tick to read it by
        middle = math.sqrt(low * high)
        low, high = middle / 10, middle * 10
    return Axis(low, high, near, far)
