"""The times of the ops of a few profiled steps, whoever profiled them, and what a profiler event costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.schema import Profiled

#: A step this much slower than the typical one is left out whole, as long as so many are left.
OUTLIER = 1.25


LEAST = 3


HOST_DISPATCH, PYTHON, INPUT = "host dispatch", "host dispatch: Python", "data input"


GUARDS, WRAPPER, RUNTIME = (f"{HOST_DISPATCH}: {what}" for what in ("guards", "compiled wrapper", "compiled runtime"))


@dataclass(frozen=True)
class Timed:
    """Times of k kept steps of n ops [s].

    own: (n, k) own time, corrected. overlap: (n,) mean own time minus share. start: (n,) in the first kept step.
    walls, corrected, idle: (k,) per step, as profiled, after correction, and in which no op ran (corrected).
    causes: mean idle time by cause. joined: share of the union of all leaf events that have a counted twin.
    unseen: counted ops of which a kept step shows no event. events: per step. dropped: outlying steps.
    unmatched: names of events without a twin, with their time.
    kernels: for each op (number of a name in kernel_names, mean time [ns]) per kernel; launches: per op. On a CPU an
    op is its own kernel, but for products that a call inside of them carries out, and launches is None. extra: names of
    kernels without an op, whose rows follow those of the ops.
    host: (n, 2) mean idle time before each op, in the framework and outside of it (`host`). calls: (n,) mean calls of
    the framework that run no op in that time (views); python: (n, k) of that time what is outside of the framework, in
    each step, but for tensors that are made of Python's numbers there. Both None where the trace does not tell.
    made: how many tensors a step makes of Python's numbers, and how long Python takes for it [s]; None: not told.
    programs: executions of compiled programs per step, None where the trace does not tell them.
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


@dataclass(frozen=True, slots=True)
class EventCost:
    """What one event of the profiler adds to the time around it [s]: in no other event (outer), and in one (inner)."""

    outer: float = 0.0
    inner: float = 0.0

    def of(self, parent: NDArray[np.int64]) -> NDArray[np.float64]:
        """That of each event, which lies in the event `parent` or in none, -1 [s]."""
        return np.where(parent >= 0, self.inner, self.outer)


def profiled(timed: Timed, mechanism: str) -> Profiled:
    """What a profile keeps of a profiled run."""
    # Ops that fill their step take by rounding longer than it: nothing was put back for them.
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
    """Profiled steps recorded one by one, as one run: outlying steps dropped whole, means over the kept ones.

    Each part holds one step of the same ops. typical: the median plain step [s]; what is far above it does not show
    how that one is spent. Where fewer than three profiled steps come near it, they are held against their own median.
    """
    # As long as a plain one, so after correction: of small ops the profiler takes half as long again.
    walls = np.concatenate([part.corrected for part in parts])
    near = walls <= OUTLIER * typical
    if near.sum() < LEAST:
        near = walls <= OUTLIER * np.median(walls)
    kept = [part for part, is_near in zip(parts, near.tolist(), strict=True) if is_near]
    unmatched: dict[str, float] = {}
    for part in kept:
        unmatched |= part.unmatched
    calls, python = _known([part.calls for part in kept]), _known([part.python for part in kept])
    return Timed(
        own=np.concatenate([part.own for part in kept], axis=1),
        overlap=np.mean([part.overlap for part in kept], axis=0),
        start=kept[0].start,
        walls=np.concatenate([part.walls for part in kept]),
        corrected=np.concatenate([part.corrected for part in kept]),
        idle=np.concatenate([part.idle for part in kept]),
        host=np.mean([part.host for part in kept], axis=0),
        causes=mean_causes([part.causes for part in kept]),
        joined=min(part.joined for part in kept),
        events=int(np.mean([part.events for part in kept])),
        dropped=len(parts) - len(kept),
        unmatched=unmatched,
        kernels=kept[0].kernels,
        unseen=max(part.unseen for part in kept),
        kernel_names=kept[0].kernel_names,
        launches=kept[0].launches,
        extra=kept[0].extra,
        programs=kept[0].programs,
        calls=np.mean(calls, axis=0) if calls else None,
        python=np.concatenate(python, axis=1) if python else None,
        made=_both([part.made for part in kept]),
    )


def _known(parts: Sequence[NDArray[np.float64] | None]) -> list[NDArray[np.float64]]:
    """What each part tells; nothing where one of them does not."""
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else []


def _both(parts: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The means of both numbers; None where a part does not tell them."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    one, other = np.mean(known, axis=0).tolist()
    return one, other


def mean_causes(causes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean by cause; a step without a cause spent nothing on it."""
    names = dict.fromkeys(name for step in causes for name in step)
    return {name: float(np.mean([step.get(name, 0.0) for step in causes])) for name in names}
