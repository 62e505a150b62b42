"""Find the roofs above the ops of a step: peaks of its arithmetic, and bandwidths. No format draws here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roofline import units
from roofline.content.points import ALL, COLD, COLD_HIGH, COUNTED, Points
from roofline.content.wording import plain
from roofline.core.device import Device

#: The name of main memory.
MAIN = "DRAM"


@dataclass(frozen=True, slots=True)
class Peak:
    """A rate that no op exceeds [FLOP/s], of one precision or of several that are equally fast."""

    name: str
    rate: float
    precisions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slope:
    """A bandwidth [byte/s]. levels: choices of memory that it is the roof of."""

    name: str
    rate: float
    levels: tuple[str, ...]


class Line(NamedTuple):
    """The part of a roof that is above all ops: its ends, each FLOP/byte and FLOP/s."""

    roof: Peak | Slope
    start: tuple[float, float]
    end: tuple[float, float]

    @property
    def text(self) -> str:
        """Write its name and rate: "fp32 100 GFLOP/s"."""
        rate = units.flop_rate if isinstance(self.roof, Peak) else units.byte_rate
        return f"{self.roof.name} {rate(self.roof.rate)}"


@dataclass(frozen=True, slots=True)
class Roofs:
    """The roofs of a device: peaks, the highest first, and bandwidths, main memory first."""

    peaks: tuple[Peak, ...]
    slopes: tuple[Slope, ...]

    def within(self, left: float, right: float, low: float, high: float) -> list[Line]:
        """Cut the roofs to a plane: peaks from the first ridge on, slopes up to the highest peak.

        left, right: FLOP/byte; low, high: FLOP/s. A slope that is not in it has no line.
        """
        steepest = max((slope.rate for slope in self.slopes), default=None)
        top = max((peak.rate for peak in self.peaks), default=high)
        lines = [
            Line(peak, (max(left, peak.rate / steepest) if steepest else left, peak.rate), (right, peak.rate))
            for peak in self.peaks
        ]
        for slope in self.slopes:
            start, end = max(left, low / slope.rate), min(right, top / slope.rate)
            if start < end:
                lines.append(Line(slope, (start, start * slope.rate), (end, end * slope.rate)))
        return lines

    def bandwidth(self, ceiling: str) -> float | None:
        """Return the bandwidth that stands for a ceiling of memory [byte/s]; None for any other, or without one."""
        level = ALL if ceiling.partition(".")[0] == "dram" else ceiling
        return next((slope.rate for slope in self.slopes if level in slope.levels), None)

    @property
    def ridges(self) -> list[tuple[float, float]]:
        """Return the points where peaks and slopes meet: (FLOP/byte, FLOP/s)."""
        return [(peak.rate / slope.rate, peak.rate) for slope in self.slopes for peak in self.peaks]


def roofs(device: Device, used: Iterable[tuple[str, str]]) -> Roofs:
    """Collect the roofs of a device. used: family and precision of the work, as `Points.used`."""
    return Roofs(_peaks(device, used), tuple(_slopes(device)))


def _peaks(device: Device, used: Iterable[tuple[str, str]]) -> tuple[Peak, ...]:
    """List the peaks of some kinds of work, the highest first; equal ones are one. What has no ceiling has no peak."""
    rates = {kind: rate for kind in used if (rate := device.rate(".".join(kind))) is not None}
    number = sum(family == "vector" for family, _ in rates)
    named: dict[float, list[tuple[str, str]]] = {}
    for (family, precision), rate in rates.items():
        name = plain(precision) if family == "matrix" else "vector" if number == 1 else f"vector {plain(precision)}"
        named.setdefault(rate, []).append((name, precision))
    return tuple(
        Peak(", ".join(dict.fromkeys(name for name, _ in names)), rate, tuple(dict.fromkeys(name for _, name in names)))
        for rate, names in sorted(named.items(), reverse=True)
    )


def _slopes(device: Device) -> Iterator[Slope]:
    """Yield main memory's bandwidth, and that of each cache where it is known, the last of them first."""
    if device.bandwidth is not None:
        yield Slope(MAIN, device.bandwidth, (ALL, COLD, COLD_HIGH, COUNTED))
    rates, order = device.family("cache"), [cache.level for cache in device.caches]
    for level in sorted(rates, key=lambda level: -order.index(level) if level in order else 1):
        name = "last-level cache" if level == "llc" else f"{plain(level.upper())} cache"
        yield Slope(name, rates[level], (f"cache.{level}",))


@dataclass(frozen=True, slots=True)
class Extent:
    """What axes have to hold: intensities [FLOP/byte], rates [FLOP/s], and rates of ops without FLOP [byte/s]."""

    intensities: tuple[float, ...]
    rates: tuple[float, ...]
    bandwidths: tuple[float, ...]


def extent(roofs_of_runs: Sequence[Roofs], points_of_runs: Sequence[Points], levels: Sequence[str] | None) -> Extent:
    """Collect every point and tick, every peak and the ridge points. levels: kinds of bytes that are drawn; None: all.

    Bandwidths are those of ops without FLOP; none where there are no such ops.
    """
    placed = [point for plotted in points_of_runs for point in plotted.placed]
    ridges = [ridge for lines in roofs_of_runs for ridge in lines.ridges]
    intensities = [
        value
        for point in placed
        for level, value in point.intensity.items()
        if value and (levels is None or level in levels)
    ]
    intensities += [tick.intensity for plotted in points_of_runs for tick in plotted.ticks]
    flopless = [point for plotted in points_of_runs for point in plotted.flopless]
    bandwidths = [rate for point in flopless for rate in (point.traffic, point.counted_traffic) if rate]
    bandwidths += [slope.rate for lines in roofs_of_runs for slope in lines.slopes] if flopless else []
    peaks = [peak.rate for lines in roofs_of_runs for peak in lines.peaks]
    return Extent(
        (*intensities, *(intensity for intensity, _ in ridges)),
        (*(point.rate for point in placed), *peaks),
        tuple(bandwidths),
    )
