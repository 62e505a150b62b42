"""Test whether plain steps are alike: whether they grow from step to step, and how many lie far from the median.

Both tests say how often they are wrong of steps that are independent of each other (`FALSE_ALARM`); steps of a machine
that is slower for a while are not, so a trend must also be seen in both halves of the steps, and be large.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from roofline.core.arrays import Array
from roofline.core.schema import Wall

#: How often a trend is seen in steps that have none, and how often steps are called steady or uneven that are not.
FALSE_ALARM, MISTAKEN = 0.01, 0.05
#: The deviates of the normal distribution that are exceeded so often, on both sides together, and by a 95 % interval.
_DEVIATE, _INTERVAL = 2.576, 1.960
#: A trend that changes the step by less than this share from the first step to the last is not said. By choice.
LEAST_CHANGE = 0.05
#: The slope of either half of the steps is at least this share of the whole one: no single jump. By choice.
_IN_HALVES = 1 / 3
#: A step is far from the median from this share of it on; of steady steps fewer than this share are. By choice.
FAR, FEW = 0.1, 0.25
#: More steps than these are taken together in groups, whose medians are tested: there are as many pairs as the square.
_MOST = 200

Spread = Literal["steady", "uneven"]


class Trend(NamedTuple):
    """The growth of a step over the one before it, as a share of the median step, with its 95 % interval."""

    change: float
    low: float
    high: float


def trend(wall: Wall) -> Trend | None:
    """Return how the plain steps of a process grow or shrink; None where that is not seen.

    By the rank correlation of Mann (1945) and Kendall with the slope of Theil and its interval by Sen (1968): no
    distribution of the times is assumed. Fewer than six steps cannot show a trend at this rate of false alarms.
    """
    times, numbers = _grouped(wall)
    size = len(times)
    if size < 3:
        return None
    slopes = _slopes(times, numbers)
    rising = int((slopes > 0).sum()) - int((slopes < 0).sum())
    deviation = math.sqrt(_variance(times))
    if abs(rising) - 1 <= _DEVIATE * deviation:
        return None
    slope, halves = float(np.median(slopes)), np.array_split(np.arange(size), 2)
    in_halves = [float(np.median(_slopes(times[half], numbers[half]))) for half in halves]
    if min(part * slope for part in in_halves) <= _IN_HALVES * slope * slope:
        return None
    # The interval leaves out as many slopes on either side as so rare a rank correlation would.
    left_out = max(0, math.floor((len(slopes) - _INTERVAL * deviation) / 2) - 1)
    low, high = float(slopes[left_out]), float(slopes[len(slopes) - 1 - left_out])
    typical = float(np.median(wall.steps))
    least = min(abs(low), abs(high)) if low * high > 0 else 0.0
    if least * float(numbers[-1] - numbers[0]) < LEAST_CHANGE * typical:
        return None
    return Trend(slope / typical, low / typical, high / typical)


def spread(wall: Wall) -> Spread | None:
    """Return whether steps are steady or uneven; None where there are too few to say.

    By the binomial distribution: steady, where so few steps as these would be far from the median in less than one of
    twenty runs of which a quarter of all steps is; uneven, where so many would be.
    """
    size, far = len(wall.steps), far_steps(wall)
    if _binomial(range(far + 1), size) < MISTAKEN:
        return "steady"
    return "uneven" if _binomial(range(far, size + 1), size) < MISTAKEN else None


def far_steps(wall: Wall) -> int:
    """Return how many steps are more than a tenth off the median step."""
    times = np.asarray(wall.steps, np.float64)
    return int((np.abs(times - np.median(times)) > FAR * np.median(times)).sum()) if len(times) else 0


def _binomial(numbers: range, size: int) -> float:
    """Return the probability that one of these numbers of `size` steps is far, where each is with probability `FEW`."""
    return sum(
        math.exp(
            math.lgamma(size + 1)
            - math.lgamma(number + 1)
            - math.lgamma(size - number + 1)
            + number * math.log(FEW)
            + (size - number) * math.log(1 - FEW)
        )
        for number in numbers
    )


def _grouped(wall: Wall) -> tuple[Array, Array]:
    """Return the times of steps, or of groups of neighbours where there are many [s], and the numbers of the steps."""
    times = np.asarray(wall.steps, np.float64)
    numbers = np.asarray(wall.numbers if wall.numbers else range(len(times)), np.float64)
    if len(times) <= _MOST:
        return times, numbers
    groups = zip(np.array_split(times, _MOST), np.array_split(numbers, _MOST), strict=True)
    medians = [(float(np.median(group)), float(np.median(group_numbers))) for group, group_numbers in groups]
    columns = np.asarray(medians, np.float64)
    return columns[:, 0], columns[:, 1]


def _slopes(times: Array, numbers: Array) -> Array:
    """Return by how much time grows from step to step between any two of them [s], in order."""
    before, after = np.triu_indices(len(times), 1)
    return np.sort((times[after] - times[before]) / (numbers[after] - numbers[before]))


def _variance(times: Array) -> float:
    """Return the variance of Kendall's score of times in any order; equal ones count as neither."""
    _, equal = np.unique(times, return_counts=True)
    size = len(times)
    ties = float((equal * (equal - 1) * (2 * equal + 5)).sum())
    return (size * (size - 1) * (2 * size + 5) - ties) / 18
