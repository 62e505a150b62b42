"""Fit the axes of the rooflines of a page to the points and the roofs of all its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from roofline.content.points import Points
from roofline.content.roofs import Roofs, extent


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


def plane(roofs: Sequence[Roofs], points_of_runs: Sequence[Points]) -> Plane:
    """Fit the axes to every point and tick, every peak and the ridge points, whichever bytes are chosen."""
    held = extent(roofs, points_of_runs, None)
    return Plane(_axis(held.intensities, 3.0), _axis(held.rates, 2.0, near=0.07, far=0.95), _axis(held.bandwidths, 2.0))


def _axis(values: Sequence[float], room: float, near: float = 0.05, far: float = 0.97) -> Axis:
    low, high = (min(values), max(values)) if values else (1.0, 100.0)
    low, high = low / room, high * room
    if high / low < 100:  # two decades at least, or there is no tick to read it by
        middle = math.sqrt(low * high)
        low, high = middle / 10, middle * 10
    return Axis(low, high, near, far)
