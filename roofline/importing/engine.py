"""The steps of a serving engine in a trace: the phase of each op of a step, and what the steps of each kind did."""

from __future__ import annotations

from dataclasses import replace

from roofline.core.batch import Batch
from roofline.core.schema import EngineSteps
from roofline.core.vocabulary import Phase
from roofline.costs.counted import PHASES, Counted
from roofline.importing.steps import Chosen
from roofline.traces.kineto.batches import Batches
from roofline.traces.rows import Rows

_FORWARD = PHASES.index("forward")


def with_phases(counted: Counted, start: Rows, batches: Batches) -> Counted:
    """The ops of a step with the phase of the engine's step around them. start: int64[nodes], of each call [ns]."""
    if not len(batches):
        return counted
    phase = counted.phase.copy()
    for row, op in enumerate(counted.ops):
        batch = batches.near(int(start[op.node])) if op.node >= 0 and phase[row] == _FORWARD else None
        if batch is not None and batch.phase is not None:
            phase[row] = PHASES.index(batch.phase)
    return replace(counted, phase=phase)


def batch_of(chosen: Chosen, batches: Batches) -> Batch | None:
    """The batch of the counted step, None where several of the engine's steps, or none, lie in it."""
    return _batch(chosen, chosen.counted, batches)


def _batch(chosen: Chosen, number: int, batches: Batches) -> Batch | None:
    starts, _ = batches.ranges()
    if len(chosen.host) > 1:
        begin, end = chosen.host[number]
        starts = starts[(starts >= begin) & (starts < end)]
    return batches.at(int(starts[0])) if len(starts) == 1 else None


def summed(chosen: Chosen, batches: Batches) -> tuple[EngineSteps, ...]:
    """The steps of each kind, those after the first of several, which fills the queue; none without an engine."""
    kinds: dict[Phase, list[tuple[float, Batch]]] = {}
    for number in range(1 if len(chosen.host) > 1 else 0, len(chosen.host)):
        batch = _batch(chosen, number, batches)
        seconds = float(chosen.high[number] - chosen.low[number]) * 1e-9
        if batch is not None and batch.phase is not None and seconds > 0:
            kinds.setdefault(batch.phase, []).append((seconds, batch))
    return tuple(
        EngineSteps(
            phase=phase,
            steps=len(steps),
            seconds=sum(seconds for seconds, _ in steps),
            sequences=sum(batch.sequences for _, batch in steps),
            tokens=sum(batch.tokens for _, batch in steps),
        )
        for phase, steps in sorted(kinds.items(), key=lambda kind: PHASES.index(kind[0]))
    )
