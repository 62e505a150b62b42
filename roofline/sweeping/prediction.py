"""Predict the time of a step between measured points of a sweep, from its counted work and a fitted start-up time.

    work = c0 + c1 B + (c2 + c3 B) S + (c4 + c5 B) S^2       with batch B and S tokens, as far as they vary

is the time of a step's ops at the ceilings of the device, counted at each measured point: products and attention are
such polynomials. Between the two nearest measured points along an axis a step takes the time of Hockney's law through
both (`projection.startup`), so their start-up, host time included, and their rate are its own; of both axes the
geometric mean. Each measured point is left out in turn: what the others say about it is how far a prediction is off.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from roofline.core import statistics
from roofline.projection.startup import between

#: Batch and length, 0 where the plan gives none.
Place = tuple[int, int]


class MeasuredPoint(NamedTuple):
    """A measured point: the work of its ops at the ceilings, and its step [s]."""

    work: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The predicted time of a step [s]. ci95: None below two points that could be left out."""

    seconds: float
    ci95: tuple[float, float] | None = None


def predict(measured: Mapping[Place, MeasuredPoint], wanted: Collection[Place]) -> dict[Place, Estimate]:
    """Predict the points that lie between measured ones of one backend; the others are left out."""
    log_seconds = {place: at for place in wanted if (at := _log_seconds(measured, place)) is not None}
    spread = _spread(list(left_out(measured).values())) if log_seconds else None
    return {
        place: Estimate(
            math.exp(at), None if spread is None else (math.exp(at - spread), math.exp(at + spread))
        )
        for place, at in log_seconds.items()
    }  # fmt: skip


def left_out(measured: Mapping[Place, MeasuredPoint]) -> dict[Place, float]:
    """Compare each measured point with the prediction of the others: log(measured / predicted), where there is one."""
    errors = {}
    for place, point in measured.items():
        remaining = {at: neighbour for at, neighbour in measured.items() if at != place}
        log_seconds = _log_seconds(remaining, place)
        if log_seconds is not None:
            errors[place] = math.log(point.seconds) - log_seconds
    return errors


def _spread(errors: list[float]) -> float | None:
    """Return the half of the 95 % interval of another point's log(measured / predicted); None of fewer than two."""
    if len(errors) < 2:
        return None
    scale = math.sqrt(fmean(error * error for error in errors) * (1 + 1 / len(errors)))
    return statistics.student(len(errors)) * scale


def _log_seconds(measured: Mapping[Place, MeasuredPoint], place: Place) -> float | None:
    """Predict the logarithm of a step [s]; None where no two points lie around it, or its work is not known."""
    work = _work(measured, place)
    if work is None:
        return None
    times = [between(work, *ends) for ends in _neighbours(measured, place)]
    return fmean(map(math.log, times)) if times else None


def _neighbours(measured: Mapping[Place, MeasuredPoint], place: Place) -> Iterator[tuple[MeasuredPoint, MeasuredPoint]]:
    """Yield the nearest measured points below and above a place, along either axis."""
    for axis in (0, 1):
        line = [at for at in measured if at[1 - axis] == place[1 - axis]]
        below = max((at for at in line if at[axis] < place[axis]), key=lambda at: at[axis], default=None)
        above = min((at for at in line if at[axis] > place[axis]), key=lambda at: at[axis], default=None)
        if below is not None and above is not None:
            yield measured[below], measured[above]


def _work(measured: Mapping[Place, MeasuredPoint], place: Place) -> float | None:
    """Evaluate the polynomial through the counted work; None where the points do not fix it."""
    places = np.asarray([*measured, place], np.float64)
    powers = [(i, j) for j in range(3 if np.ptp(places[:, 1]) else 1) for i in range(2 if np.ptp(places[:, 0]) else 1)]
    terms = np.stack([places[:, 0] ** i * places[:, 1] ** j for i, j in powers], axis=1)
    terms /= terms.max(axis=0)
    counted = np.asarray([point.work for point in measured.values()])
    # Relative to the work: a small step counts as much as a large one.
    factors, _, rank, _ = np.linalg.lstsq(terms[:-1] / counted[:, None], np.ones(len(counted)), rcond=None)
    work = float(terms[-1] @ factors)
    return work if rank == len(powers) and work > 0 else None
