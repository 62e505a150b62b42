"""A run, drawn again and again: the intervals of everything that is said about the difference of two runs.

A draw takes as many profiled steps as there are, with replacement, and the median of as many plain steps; op times,
scale, wall and gap of one draw belong together. What another process would have given is drawn too: the run as a whole
is faster or slower by as much as its processes (`--rounds`) lie apart, and where there was one process, by as much as
the two halves of its steps do, which is the least that can be said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.core import statistics
from roofline.core.scale import taken

Array = NDArray[np.float64]

RESAMPLES = 1000
#: Fewer steps than this, plain or profiled, say nothing of how far they lie apart.
FEWEST = 3


Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Resamples:
    """steps: weight of each profiled step, shape (RESAMPLES, steps); scale, wall, busy: of each draw [1, s, s].

    enough: whether there are steps enough for an interval.
    """

    steps: Array
    scale: Array
    wall: Array
    busy: Array
    enough: bool

    @property
    def gap(self) -> Array:
        """wall - busy of each draw [s]."""
        return self.wall - self.busy

    def times(self, own: Array) -> Array:
        """The sum of some times in each draw [s], shape (RESAMPLES,).

        own: unscaled [s], of rows in each profiled step, shape (rows, steps), or constants, shape (rows,).
        """
        drawn: Array = self.scale * (own.sum(axis=0) @ self.steps.T if own.ndim == 2 else own.sum())
        return drawn


def draw(analysis: Analysis) -> Resamples:
    """RESAMPLES resamples of a run that was timed; the same whatever it is compared with."""
    profile, profiled = analysis.profile, analysis.profile.profiled
    assert profiled is not None
    walls, number = np.asarray(profile.wall.steps, np.float64), len(profiled.corrected)
    own = np.asarray([op.own_ns for op in profile.ops], np.float64).reshape(len(profile.ops), number) * 1e-9
    overlap = sum(op.overlap_ns for op in profile.ops) * 1e-9
    rng = statistics.generator(profile.wall.steps, own)
    chosen = rng.integers(0, number, (RESAMPLES, number))
    steps = np.zeros((RESAMPLES, number))
    np.add.at(steps, (np.arange(RESAMPLES)[:, None], chosen), 1 / number)
    plain = np.median(statistics.resample(profile.wall.steps, rng, RESAMPLES), axis=1)
    mean = steps @ taken(profile, profiled)
    scale = np.minimum(1.0, np.divide(plain, mean, out=np.ones_like(plain), where=mean > 0))
    # The whole process, its ops and its gap alike, is as fast as another one would have been.
    other = _processes(walls, profile.wall.processes, rng)
    busy = (steps @ own.sum(axis=0) - overlap) * scale
    enough = min(number, len(walls)) >= FEWEST
    return Resamples(steps, scale * other, plain * other, busy * other, enough)


def _processes(walls: Array, others: tuple[tuple[float, ...], ...], rng: np.random.Generator) -> Array:
    """How much slower another process would be than this one, in each draw.

    The mean of the logarithms of the processes' medians lies within Student's t of what more processes would give; it
    is told relative to this process, which may be the odd one out. A run of one process has the halves of its steps.
    """
    medians = np.asarray([np.median(each) for each in ((*walls,), *others) if each])
    halves = np.array_split(walls, 2)
    drift = abs(float(np.median(halves[0]) - np.median(halves[1]))) / float(np.median(walls)) if len(walls) > 3 else 0.0
    drifted: Array = 1 + drift * (rng.random(RESAMPLES) - 0.5)
    if len(medians) < 2:
        return drifted
    logs = np.log(medians)
    apart = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    drawn = float(logs.mean() - logs[0]) + apart * rng.standard_t(len(logs) - 1, RESAMPLES)
    return np.asarray(np.exp(np.clip(drawn, -_AT_MOST, _AT_MOST)) * drifted)


#: Two processes say so little that a draw may be anything; more than three times as slow is not drawn.
_AT_MOST = math.log(3)


def interval(drawn: Array, *of: Resamples) -> Interval | None:
    """The 95 % interval of drawn values; None where one of the runs has too few steps for one."""
    if not all(resamples.enough for resamples in of):
        return None
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)
