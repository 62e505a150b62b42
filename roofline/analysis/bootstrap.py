"""A run, drawn again and again: the intervals of everything that is said about the difference of two runs.

A draw takes as many profiled steps as there are, with replacement, and the median of as many plain steps; op times,
scale, wall and gap of one draw belong together. What another process would have given is drawn too: the run as a whole
is faster or slower by as much as its processes (`--rounds`) lie apart, and where there was one process, by as much as
the two halves of its steps do, which is the least that can be said.

Three questions need steps: how far walls lie apart (plain steps), ops (profiled steps; with too few of these, calls of
one op within a step tell it), and gaps, which are walls less ops (both).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

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
#: What is drawn, as each needs other steps to be told apart from noise.
Drawn = Literal["wall", "ops", "gap"]


@dataclass(frozen=True, slots=True)
class Resamples:
    """steps: weight of each profiled step, shape (RESAMPLES, steps); scale, wall, busy: of each draw [1, s, s].

    known: what there are steps enough for an interval of. between_calls: by how much calls of one op in a step lie
    apart, as a share of their time; 0 where steps are drawn.
    """

    steps: Array
    scale: Array
    wall: Array
    busy: Array
    known: frozenset[Drawn]
    between_calls: float = 0.0

    @property
    def gap(self) -> Array:
        """Return wall - busy of each draw [s]."""
        return self.wall - self.busy

    def times(self, seconds: Array) -> Array:
        """Sum some times in each draw [s], shape (RESAMPLES,).

        seconds: unscaled [s], of rows in each profiled step, shape (rows, steps), or constants, shape (rows,).
        """
        if seconds.ndim == 1:
            constant: Array = self.scale * seconds.sum()
            return constant
        drawn: Array = self.scale * (seconds.sum(axis=0) @ self.steps.T + self._calls(seconds))
        return drawn

    def _calls(self, seconds: Array) -> Array:
        """Draw what other calls of the same ops would add in each draw [s], each call apart from the others."""
        if not self.between_calls or not seconds.size:
            return np.zeros(len(self.scale))
        spread = self.between_calls * float(np.sqrt((seconds.mean(axis=1) ** 2).sum() / seconds.shape[1]))
        noise: Array = spread * statistics.generator(seconds).standard_normal(len(self.scale))
        return noise


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
    known = _known(len(walls), number)
    calls = None if "ops" in known else _between_calls(profile, own_seconds)
    resamples = Resamples(
        steps,
        scale * process_factors,
        plain * process_factors,
        np.zeros(0),
        known if calls is None else known | {"ops"},
        calls or 0.0,
    )
    busy = resamples.times(own_seconds) - overlap * resamples.scale
    return replace(resamples, busy=busy)


def _known(plain: int, profiled: int) -> frozenset[Drawn]:
    """List what so many steps tell the spread of."""
    known: set[Drawn] = {"wall"} if plain >= FEWEST else set()
    if min(plain, profiled) >= FEWEST:
        known |= {"ops", "gap"}
    return frozenset(known)


def _between_calls(profile: Profile, own_seconds: Array) -> float | None:
    """Return the relative deviation of calls of one op, by all that are made `FEWEST` times or more; None without any.

    None too where all calls take the same time, by a clock too coarse for them. own_seconds: of each op in each step
    [s]. An op of much time counts for much: deviations and means are squared sums.
    """
    mean = own_seconds.mean(axis=1) if own_seconds.size else np.zeros(0)
    signature = np.asarray([op.signature for op in profile.ops], np.int64)
    ran = mean > 0
    number = np.bincount(signature[ran], minlength=len(profile.signatures))
    repeats = ran & (number[signature] >= FEWEST)
    if not repeats.any():
        return None
    group, counts = np.unique(signature[repeats], return_inverse=True, return_counts=True)[1:]
    means = np.bincount(group, weights=mean[repeats]) / counts
    deviations = float(((mean[repeats] - means[group]) ** 2).sum())
    return math.sqrt(deviations / float(((counts - 1) * means**2).sum())) or None


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


def interval(drawn: Array, *of: Resamples, kind: Drawn) -> Interval | None:
    """Return the 95 % interval of drawn values of a kind; None where one of the runs has too few steps for one."""
    if not all(kind in resamples.known for resamples in of):
        return None
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)
