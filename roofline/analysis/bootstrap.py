"""A run, drawn again and again: the intervals of everything that is said about the difference of two runs.

A draw takes as many profiled steps as there are, with replacement, and the median of as many plain steps; op times,
scale, wall and gap of one draw belong together. What another process would have given is drawn too: the run as a whole
is faster or slower by as much as its processes (`--rounds`) lie apart, and where there was one process, by as much as
the two halves of its steps do, which is the least that can be said.

Three questions need steps: how far walls lie apart (plain steps), ops (profiled steps), and gaps, which are walls less
ops (both). With too few of these, what repeats within a step tells it: calls of one op, and the times from one op to
the next. All ops of a draw are then longer by one factor, and its wall by another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.core import statistics
from roofline.core.arrays import Array, Rows
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

    known: what there is an interval of.
    """

    steps: Array
    scale: Array
    wall: Array
    busy: Array
    known: frozenset[Drawn]

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
    known, calls = _known(len(walls), number), None
    if "ops" not in known and (calls := _between_calls(profile, own_seconds)) is not None:
        steps *= np.exp(calls * rng.standard_normal(RESAMPLES))[:, None]
        known |= {"ops"}
    if calls and "wall" not in known and (starts := _between_starts(profile)) is not None:
        plain = plain * np.exp(starts * rng.standard_normal(RESAMPLES))
        known |= {"wall", "gap"}
    busy = (steps @ own_seconds.sum(axis=0) - overlap) * scale
    return Resamples(steps, scale * process_factors, plain * process_factors, busy * process_factors, known)


def _known(plain: int, profiled: int) -> frozenset[Drawn]:
    """List what so many steps tell the spread of."""
    known: set[Drawn] = {"wall"} if plain >= FEWEST else set()
    if min(plain, profiled) >= FEWEST:
        known |= {"ops", "gap"}
    return frozenset(known)


def _between_calls(profile: Profile, own_seconds: Array) -> float | None:
    """Return the relative deviation of the calls of one op within a step; None where none tells it.

    own_seconds: of each op in each step [s]. Sums over the ops of a class lie apart by less from step to step: in five
    public traces of several steps all did but those of transfers and three that took less than 0.5 % of the time.
    """
    signatures = np.asarray([op.signature for op in profile.ops], np.int64)
    spread = _pooled(signatures, own_seconds.mean(axis=1) if own_seconds.size else np.zeros(0))
    return None if spread is None else spread[0]


def _between_starts(profile: Profile) -> float | None:
    """Return by how much a step deviates, relatively, if each time from the start of one op to that of the next does.

    By pairs of ops that repeat within it. None where none tells it, and of a step that was timed by itself: its ops are
    those of another. The steps of five public traces lay apart by 0.1, 0.2, 0.6, 1.3 and 7 times that.
    """
    if profile.wall.source != "profiled":
        return None
    starts = np.asarray([op.start_ns for op in profile.ops], np.float64)
    order = np.argsort(starts, kind="stable")
    signatures = np.asarray([op.signature for op in profile.ops], np.int64)[order]
    times = np.diff(starts[order])
    spread = _pooled(signatures[:-1] * len(profile.signatures) + signatures[1:], times)
    return None if spread is None else float(np.sqrt((spread[1] ** 2).sum()) / times.sum())


def _pooled(kinds: Rows, times: Array) -> tuple[float, Array] | None:
    """Return the relative deviation of times of one kind, by all kinds that repeat, and the deviation of each time.

    A kind repeats with `FEWEST` times; one that does not has the relative deviation of the others. None where none
    does, and where all of a kind are equal, by a clock too coarse for them. Long ones count for much: deviations and
    means are squared sums.
    """
    _, kind, number = np.unique(kinds, return_inverse=True, return_counts=True)
    repeats = number >= FEWEST
    means = np.bincount(kind, weights=times) / number
    squares = np.bincount(kind, weights=(times - means[kind]) ** 2)
    most = float(((number - 1) * means**2)[repeats].sum())
    pooled = math.sqrt(float(squares[repeats].sum()) / most) if most else 0.0
    of_kind = np.sqrt(squares / np.maximum(number - 1, 1))
    return (pooled, np.where(repeats[kind], of_kind[kind], pooled * times)) if pooled else None


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
    """Return the 95 % interval of drawn values of a kind; None where one of the runs does not tell it."""
    if not all(kind in resamples.known for resamples in of):
        return None
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)
