"""Hold and merge the op times of a few profiled steps, whoever profiled them, and the cost of a profiler event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.schema import Profiled, Waits

#: A step that is slower than the typical one by this factor is left out, if at least LEAST steps remain.
OUTLIER, LEAST = 1.25, 3

HOST_DISPATCH, PYTHON, INPUT = "host dispatch", "host dispatch: Python", "data input"
GUARDS, WRAPPER, RUNTIME = (f"{HOST_DISPATCH}: {part}" for part in ("guards", "compiled wrapper", "compiled runtime"))


@dataclass(frozen=True)
class Timed:
    """Hold the times of k kept steps of n ops [s].

    own: (n, k) own time, corrected. overlap: (n,) mean own time minus share. start: (n,) in the first kept step.
    walls, corrected, idle: (k,) per step: as profiled, after correction, and without any op (corrected).
    causes: mean idle time by cause. joined: share of the union of all leaf events that have a counted twin.
    unseen: number of counted ops without an event in a kept step. events: per step. dropped: outlying steps.
    unmatched: names of events without a twin, with their time.
    kernels: for each op (number of a name in kernel_names, mean time [ns]) per kernel; launches: per op. On a CPU an
    op is its own kernel, except products that a call inside of them carries out, and launches is None. extra: names of
    kernels without an op, whose rows follow those of the ops.
    host: (n, 2) mean idle time before each op, in the framework and outside of it (`host`). calls: (n,) mean calls of
    the framework that run no op in that time (views); python: (n, k) the part of that time outside of the framework, in
    each step, without the making of tensors of Python's numbers. Both None where the trace does not tell.
    made: number of tensors that a step makes of Python's numbers, and Python's time for it [s]; None: not known.
    waits: idle time whose causes are named, by the number of the op; None where it was not looked for.
    programs: executions of compiled programs per step, None where the trace does not tell.
    """

    own: NDArray[np.float64]
    overlap: NDArray[np.float64]
    start: NDArray[np.float64]
    walls: NDArray[np.float64]
    corrected: NDArray[np.float64]
    idle: NDArray[np.float64]
    host: NDArray[np.float64]
    causes: dict[str, float]
    joined: float
    events: int
    dropped: int
    unmatched: dict[str, float]
    kernels: list[tuple[tuple[int, int], ...]]
    kernel_names: tuple[str, ...] = ()
    launches: NDArray[np.int64] | None = None
    extra: tuple[str, ...] = ()
    unseen: int = 0
    programs: float | None = None
    calls: NDArray[np.float64] | None = None
    python: NDArray[np.float64] | None = None
    made: tuple[float, float] | None = None
    waits: Waits | None = None


@dataclass(frozen=True, slots=True)
class EventCost:
    """Hold the time that one event of the profiler adds around it [s]: in no other event (outer), in one (inner)."""

    outer: float = 0.0
    inner: float = 0.0

    def of(self, parent: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the cost of each event, which lies in the event `parent` or in none, -1 [s]."""
        return np.where(parent >= 0, self.inner, self.outer)


def profiled(timed: Timed, mechanism: str) -> Profiled:
    """Make the part of a profile that describes its profiled run."""
    # Ops that fill their step may exceed it by rounding: the cost is then 0.
    cost = max(0.0, float(np.mean(timed.walls - timed.corrected)))
    return Profiled(
        walls=tuple(timed.walls.tolist()),
        corrected=tuple(timed.corrected.tolist()),
        dropped=timed.dropped,
        events=timed.events,
        event_cost=cost / timed.events if timed.events else 0.0,
        idle=tuple(timed.idle.tolist()),
        idle_causes=timed.causes,
        joined=timed.joined,
        mechanism=mechanism,
    )


def merge(parts: Sequence[Timed], typical: float) -> Timed:
    """Merge profiled steps into one run: drop outlying steps, and take means over the kept ones.

    Each part holds one step of the same ops. typical: the median plain step [s]; a step far above it does not show how
    a typical one spends its time. If fewer than three profiled steps come near it, their own median is typical.
    """
    # Corrected times are compared with plain ones: the profiler lengthens small ops by half.
    walls = np.concatenate([part.corrected for part in parts])
    near = walls <= OUTLIER * typical
    if near.sum() < LEAST:
        near = walls <= OUTLIER * np.median(walls)
    typical_steps = [part for part, is_near in zip(parts, near.tolist(), strict=True) if is_near]
    unmatched: dict[str, float] = {}
    for part in typical_steps:
        unmatched |= part.unmatched
    calls, python = (
        _all_reported([part.calls for part in typical_steps]),
        _all_reported([part.python for part in typical_steps]),
    )
    return Timed(
        own=np.concatenate([part.own for part in typical_steps], axis=1),
        overlap=np.mean([part.overlap for part in typical_steps], axis=0),
        start=typical_steps[0].start,
        walls=np.concatenate([part.walls for part in typical_steps]),
        corrected=np.concatenate([part.corrected for part in typical_steps]),
        idle=np.concatenate([part.idle for part in typical_steps]),
        host=np.mean([part.host for part in typical_steps], axis=0),
        causes=mean_causes([part.causes for part in typical_steps]),
        joined=min(part.joined for part in typical_steps),
        events=int(np.mean([part.events for part in typical_steps])),
        dropped=len(parts) - len(typical_steps),
        unmatched=unmatched,
        kernels=typical_steps[0].kernels,
        unseen=max(part.unseen for part in typical_steps),
        kernel_names=typical_steps[0].kernel_names,
        launches=typical_steps[0].launches,
        extra=typical_steps[0].extra,
        programs=typical_steps[0].programs,
        calls=np.mean(calls, axis=0) if calls else None,
        python=np.concatenate(python, axis=1) if python else None,
        made=_mean_made([part.made for part in typical_steps]),
    )


def _all_reported(parts: Sequence[NDArray[np.float64] | None]) -> list[NDArray[np.float64]]:
    """Return the arrays of all parts; empty where a part has none."""
    reported = [part for part in parts if part is not None]
    return reported if len(reported) == len(parts) else []


def _mean_made(parts: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """Average `Timed.made` over parts; None where a part has none."""
    reported = [part for part in parts if part is not None]
    if not reported or len(reported) < len(parts):
        return None
    count, seconds = np.mean(reported, axis=0).tolist()
    return count, seconds


def mean_causes(causes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average by cause; a step without a cause spent nothing on it."""
    names = dict.fromkeys(name for step in causes for name in step)
    return {name: float(np.mean([step.get(name, 0.0) for step in causes])) for name in names}
