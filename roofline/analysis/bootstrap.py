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

from roofline.analysis.analysis import Analysis
from roofline.core import statistics
from roofline.core.arrays import Array
from roofline.core.scale import taken
from roofline.core.schema import Profile

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
        """Return wall - busy of each draw [s]."""
        return self.wall - self.busy

    def times(self, seconds: Array) -> Array:
        """Sum some times in each draw [s], shape (RESAMPLES,).

        seconds: unscaled [s], of rows in each profiled step, shape (rows, steps), or constants, shape (rows,).
        """
        drawn: Array = self.scale * (seconds.sum(axis=0) @ self.steps.T if seconds.ndim == 2 else seconds.sum())
        return drawn


def draw(analysis: Analysis, compared_with: Analysis | None = None) -> Resamples:
    """Draw RESAMPLES resamples of a run that was timed.

    compared_with: the other run of a comparison: where both have several processes, how far those lie apart is told by
    all of them (`_apart`). Else a run's resamples are the same whatever it is compared with.
    """
    profile, profiled = analysis.profile, analysis.profile.profiled
    assert profiled is not None
    walls, number = np.asarray(profile.wall.steps, np.float64), len(profiled.corrected)
    own_seconds = np.asarray([op.own_ns for op in profile.ops], np.float64).reshape(len(profile.ops), number) * 1e-9
    overlap = sum(op.overlap_ns for op in profile.ops) * 1e-9
    rng = statistics.generator(profile.wall.steps, own_seconds)
    chosen = rng.integers(0, number, (RESAMPLES, number))
    steps = np.zeros((RESAMPLES, number))
    np.add.at(steps, (np.arange(RESAMPLES)[:, None], chosen), 1 / number)
    plain = statistics.medians(profile.wall.steps, rng, RESAMPLES)
    mean = steps @ taken(profile, profiled)
    scale = np.minimum(1.0, np.divide(plain, mean, out=np.ones_like(plain), where=mean > 0))
    # The whole process, its ops and its gap alike, is as fast as another one would have been.
    process_factors = _processes(
        walls, _medians(profile), None if compared_with is None else _medians(compared_with.profile), rng
    )
    busy = (steps @ own_seconds.sum(axis=0) - overlap) * scale
    enough = min(number, len(walls)) >= FEWEST
    return Resamples(steps, scale * process_factors, plain * process_factors, busy * process_factors, enough)


def _medians(profile: Profile) -> Array:
    """Return the median step of each process of a run [s]."""
    return np.asarray([np.median(steps) for steps in (profile.wall.steps, *profile.wall.processes) if steps])


def _processes(walls: Array, medians: Array, compared_medians: Array | None, rng: np.random.Generator) -> Array:
    """Draw how much slower another process would be than this one.

    The mean of the logarithms of the processes' medians lies within Student's t of what more processes would give; it
    is told relative to this process, which may be the odd one out. A run of one process has the halves of its steps.
    """
    halves = np.array_split(walls, 2)
    drift = abs(float(np.median(halves[0]) - np.median(halves[1]))) / float(np.median(walls)) if len(walls) > 3 else 0.0
    drifted: Array = 1 + drift * (rng.random(RESAMPLES) - 0.5)
    if len(medians) < 2:
        return drifted
    logs = np.log(medians)
    deviation, freedom = _apart(logs, None if compared_medians is None else np.log(compared_medians))
    drawn = float(logs.mean() - logs[0]) + deviation / math.sqrt(len(logs)) * rng.standard_t(freedom, RESAMPLES)
    return np.asarray(np.exp(np.clip(drawn, -_AT_MOST, _AT_MOST)) * drifted)


def _apart(logs: Array, compared_logs: Array | None) -> tuple[float, int]:
    """Return the standard deviation of the logarithms of processes, and its degrees of freedom.

    That of both runs together, as in Student's test of two means: one process more or less of either is slower for the
    machine's reasons and not the step's. Of two processes a run's own says next to nothing (t = 12.7; of two each 4.3).
    """
    runs = [logs] if compared_logs is None or len(compared_logs) < 2 else [logs, compared_logs]
    freedom = sum(len(run) - 1 for run in runs)
    return math.sqrt(sum(float(run.var(ddof=0)) * len(run) for run in runs) / freedom), freedom


#: Two processes say so little that a draw may be anything; more than three times as slow is not drawn.
_AT_MOST = math.log(3)


def interval(drawn: Array, *of: Resamples) -> Interval | None:
    """Return the 95 % interval of drawn values; None where one of the runs has too few steps for one."""
    if not all(resamples.enough for resamples in of):
        return None
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)
