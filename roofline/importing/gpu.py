"""From an imported Kineto trace of a GPU to the counted ops of a step and their times.

One step is counted, and the other steps are laid over it call by call. Every device event stays in the busy time,
whoever asked for it: what has no op is a row of its own, named after its kernel, with the reason why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roofline.core.batch import Batch
from roofline.core.schema import Collectives, EngineSteps
from roofline.costs.counted import Counted
from roofline.errors import MeasurementError
from roofline.importing import engine
from roofline.importing.calls import LAUNCH, OP, Path, StepCalls, calls, marked, path
from roofline.importing.capture import Captures, Replays, holds_capture
from roofline.importing.collectives import beyond_most, collectives
from roofline.importing.python_frames import with_python
from roofline.importing.rows import Table
from roofline.importing.selection import ALL, Selection, find
from roofline.importing.steps import Chosen, aligned, choose
from roofline.importing.unclaimed import unclaimed
from roofline.importing.work import communication, foreign_calls
from roofline.importing.work.costs import Costs
from roofline.pytorch import count
from roofline.pytorch.nodes import Nodes
from roofline.pytorch.time_cuda import Kept, TimedCuda, time_steps
from roofline.traces import intervals
from roofline.traces.kineto.batches import Batches
from roofline.traces.kineto.links import Links, link, without_kernel
from roofline.traces.kineto.reader import KERNEL, KinetoTrace
from roofline.traces.kineto.steps import Steps
from roofline.traces.rows import Rows

#: A step of which less than this share of the device time repeats the counted step is another kind of step.
ALIKE = 0.9
#: So many steps are looked at, the first ones of a trace. Each is laid over the counted one by itself, among the events
#: of all, and more of them tell no more. By choice.
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Figures:
    """Sum up the whole trace, steps or not. Times in seconds.

    span: from the first device event to the end of the last. busy: union of all device events. linked, launched,
    twinned: shares of the summed time of device events that have an op, have a launch, and have no op but that of a
    twin in the counted step.
    """

    span: float
    busy: float
    linked: float | None
    launched: float | None
    twinned: float | None


@dataclass(frozen=True, slots=True)
class GpuStep:
    """A step of a trace. steps: those that the trace holds.

    communication: time in collectives per kept step, and exposed: of it what no other kernel runs beside [s].
    warnings: what was left out or assumed, in sentences. shapes: whether any counted call has its arguments. batch: of
    the serving engine's step that was counted; engine: its steps by their kind.
    """

    counted: Counted
    timed: TimedCuda
    figures: Figures
    steps: Steps
    shapes: bool
    chosen: Chosen
    communication: float
    exposed: float
    collectives: Collectives | None
    warnings: tuple[str, ...]
    batch: Batch | None = None
    engine: tuple[EngineSteps, ...] = ()


def read(trace: KinetoTrace, costs: Costs, captures: Sequence[KinetoTrace] = (), selection: Selection = ALL) -> GpuStep:
    """The counted ops of a step and their times in every step that repeats it.

    selection: the steps to use. captures: the traces of the graphs' captures: they tell the op of each kernel that a
    graph replays. Raises MeasurementError where the trace holds no device event, or no time of any kernel.
    """
    if not len(trace.device):
        raise MeasurementError("No kernel and no copy of a device is left in the trace; record it again.")
    kernels = trace.device.kind == KERNEL
    if not trace.device.duration[kernels if kernels.any() else ...].any():
        raise MeasurementError("None of the trace's kernels has a duration; record it again, and export it whole.")
    links = link(trace)
    all_marks, asked = find(trace, selection, links)
    rows = _looked_at(asked)
    marks = all_marks.select(rows)
    chosen = choose(trace, links, marks, asked[rows], by_number=selection.numbers is not None)
    on = path(trace, links)
    counted_calls = with_python(trace, calls(trace, on, [chosen.host[chosen.counted]]))
    plain = costs.nodes(trace, counted_calls.events, links, counted_calls.ops)
    nodes = marked(plain, counted_calls)
    batches = Batches(trace)
    generated = foreign_calls.kernels(trace, links, plain, batches, costs.sources)
    counted_events = np.flatnonzero(chosen.step == chosen.counted)
    generated |= unclaimed(trace, links, counted_events, counted_calls, nodes, costs, generated)
    counted = engine.with_phases(count.count(nodes, costs, generated), plain.events.start, batches)
    number = _numbers(nodes, counted)

    replays = _replayed(trace, links, costs, captures, chosen)
    repeating, owner, differing = _owners(trace, links, on, chosen, counted_calls, number)
    if replays is not None:
        alike = _replaying_alike(replays, links, chosen, repeating, owner)
        repeating, differing = alike, differing + len(repeating) - len(alike)
    table = Table(trace, links, counted, replays, _batches(trace, links, owner, counted_events, batches))
    within = _within(trace, chosen, repeating)
    owner = table.complete(owner, within, chosen.step == chosen.counted)
    counted = table.counted(owner, within)
    kept = Kept(chosen.step, np.asarray(repeating), chosen.low[repeating], chosen.high[repeating], chosen.dropped)
    timed = time_steps(trace, links, kept, owner, len(counted.ops), table.linked(owner))
    exchanges = collectives(trace, links, marks, chosen.step, owner, counted)
    stretches = communication.exposed(trace, links, chosen.low[repeating], chosen.high[repeating])
    recorded_calls = [nodes.call(index) for index in _first_nodes(number).tolist() if "::" in nodes.names[index]]
    shapes = any(call.inputs for call in recorded_calls) or (replays is not None and replays.shapes)
    return GpuStep(
        counted=counted,
        timed=timed,
        figures=_figures(trace, links, table.twinned(owner)),
        steps=all_marks,
        # Without any call to tell by, as where a graph replays everything, the trace itself may say it.
        shapes=shapes or (not recorded_calls and trace.record_shapes is True),
        chosen=replace(chosen, selected=tuple(repeating)),
        communication=sum(exposure.total for exposure in stretches) / len(repeating),
        exposed=sum(exposure.exposed for exposure in stretches) / len(repeating),
        collectives=exchanges,
        warnings=(
            *_left_out(chosen, all_marks, int(asked.sum() - asked[rows].sum()), differing),
            *_lost(trace, links),
            *_unjoined(links),
            *_devices(trace),
            *beyond_most(trace, links, chosen.step, exchanges),
            *(replays.warnings if replays else ()),
        ),
        batch=engine.batch_of(chosen, batches),
        engine=engine.summed(chosen, batches),
    )


def _looked_at(asked: NDArray[np.bool_]) -> Rows:
    """The places of the steps to look at: the first of those asked for, and the one before, with whose end they begin.

    At least two of several: a lone step is the whole trace.
    """
    first, last = np.flatnonzero(asked)[[0, -1]].tolist()
    first = max(0, first - 1)
    return np.arange(first, min(max(last, 1) + 1, len(asked), first + MOST_STEPS))


def _first_nodes(number: Rows) -> Rows:
    """The first node of each counted op."""
    rows = np.flatnonzero(number >= 0)
    return rows[np.unique(number[rows], return_index=True)[1]]


def _figures(trace: KinetoTrace, links: Links, twins: NDArray[np.bool_]) -> Figures:
    device = trace.device
    time = device.duration
    return Figures(
        span=float(device.end.max() - device.start.min()) * 1e-9,
        busy=float(intervals.length(device.start, device.end)) * 1e-9,
        linked=links.linked,
        launched=links.launched,
        twinned=float(time[twins].sum() / time.sum()) if time.sum() else None,
    )


def _left_out(chosen: Chosen, marks: Steps, further: int, differing: int) -> list[str]:
    texts = [str(marks.repeated)] if marks.repeated is not None and len(marks) == 1 else []
    if chosen.before:
        events = "1 device event" if chosen.before == 1 else f"{chosen.before:,} device events"
        texts.append(f"Left out {events} from before the step")
    for number, why in (
        (further, f"after the first {MOST_STEPS:,}"),
        (chosen.incomplete, "not all launches and kernels are in the trace"),
        (chosen.dropped, "far longer or shorter than the others"),
        (differing, "other ops than in the counted step"),
    ):
        if number:
            texts.append(f"{number} {'step' if number == 1 else 'steps'} left out: {why}")
    return texts


def _lost(trace: KinetoTrace, links: Links) -> list[str]:
    """Warn of kernels that the recorder lost, as one does whose buffer is full: they look like idle time."""
    number = int(without_kernel(trace, links).sum())
    number -= int((links.launch < 0).sum()) if number else 0  # those joined to no launch may be some of these
    launches = "1 launch has" if number == 1 else f"{number:,} launches have"
    text = f"{launches} no kernel in the trace, which lost them: what ran then looks idle; record fewer steps"
    return [text] if number else []


def _unjoined(links: Links) -> list[str]:
    """Warn of ids of the trace that contradict each other: no join is better than a wrong one."""
    texts = []
    if links.damaged:
        events = "1 device event was" if links.damaged == 1 else f"{links.damaged} device events were"
        texts.append(f"{events} joined to no launch, because ids are repeated or contradictory")
    if links.clashing:
        texts.append(
            f"launches of several processes share the ids of {links.clashing} of them: import one trace for each "
            "process"
        )
    by_id = int(links.by_id.sum())
    if by_id:
        events = "1 device event" if by_id == 1 else f"{by_id} device events"
        texts.append(f"{events} joined to an op by External id alone, without a launch that confirms it")
    return texts


def _devices(trace: KinetoTrace) -> list[str]:
    used = sorted({trace.threads[code][0] for code in np.unique(trace.device.thread).tolist()})
    if len(used) < 2:
        return []
    named = ", ".join(name[:20] for name in used[:8]) + (", ..." if len(used) > 8 else "")
    return [
        f"kernels and copies of {len(used)} devices ({named}) are in this trace: they count as one device, which is "
        "busy while any of them is, under the ceilings of one"
    ]


def _replayed(
    trace: KinetoTrace, links: Links, costs: Costs, captures: Sequence[KinetoTrace], chosen: Chosen
) -> Replays | None:
    """What the graphs of the trace replay, by captures that were given, and by those that the trace itself holds.

    None where none was given, and no graph replays one of its own.
    """
    held = [trace] if links.graph.any() and holds_capture(trace) else []
    if not captures and not held:
        return None
    replays = Captures([*captures, *held], costs).replays(trace, links, chosen.step)
    return replays if captures or (replays.op >= 0).any() else None


def _batches(
    trace: KinetoTrace, links: Links, owner: Rows, counted_events: Rows, batches: Batches
) -> dict[int, Batch | None]:
    """The batch of the serving engine around each graph launch of the counted step, by the number of its op."""
    rows = counted_events[links.graph[counted_events] & (owner[counted_events] >= 0)]
    numbers, first = np.unique(owner[rows], return_index=True)
    starts = trace.launches.start[links.launch[rows[first]]].tolist()
    return {number: batches.at(start) for number, start in zip(numbers.tolist(), starts, strict=True)}


def _within(trace: KinetoTrace, chosen: Chosen, steps_used: list[int]) -> NDArray[np.bool_]:
    """Mark the events of the steps used, or that run in the window of one: bool[device]."""
    low, high = chosen.low[steps_used], chosen.high[steps_used]
    # Windows are in order and disjoint: the first that ends after the event's start is the only one to look at.
    at = np.searchsorted(high, trace.device.start, "right")
    begins = np.append(low, np.iinfo(np.int64).max)[at]
    return np.isin(chosen.step, steps_used) | (trace.device.end > begins)


# ---------------------------------------------------------------------------------------------- whose kernels


def _numbers(nodes: Nodes, counted: Counted) -> Rows:
    """int64[nodes]: the number of the counted op that each node is or lies in, -1 for none."""
    framework_calls = np.asarray([not name.startswith("roofline:") for name in nodes.names], bool)
    numbers = np.full(len(nodes), -1, np.int64)
    numbers[framework_calls] = counted.op_of
    return numbers


def _owners(
    trace: KinetoTrace, links: Links, on: Path, chosen: Chosen, counted: StepCalls, number: Rows
) -> tuple[list[int], Rows, int]:
    """The steps that repeat the counted one, the counted op of each of their device events, and how many do not."""
    owner = np.full(len(trace.device), -1, np.int64)
    repeating: list[int] = []
    for step in range(len(chosen.host)):
        rows = np.flatnonzero(chosen.step == step)
        if step == chosen.counted:
            step_calls, twin = counted, np.arange(len(counted))
        else:
            step_calls = calls(trace, on, [chosen.host[step]])
            twin = aligned(step_calls, counted)
        mine, has_twin = np.append(np.append(number, -1)[twin], -1), np.append(twin >= 0, True)
        op = step_calls.index(OP, len(trace.ops))[links.op[rows]]
        by_op = mine[op]
        # A launch is like any other launch: it tells something only where it lies in the same call, or in none.
        by_launch = np.where(has_twin[op], mine[step_calls.index(LAUNCH, len(trace.launches))[links.launch[rows]]], -1)
        event_owner = np.where((by_op >= 0) & ~links.graph[rows], by_op, np.where(by_launch >= 0, by_launch, by_op))
        time = trace.device.duration[rows]
        linked = (links.op[rows] >= 0) | (links.launch[rows] >= 0)
        if step == chosen.counted or time[event_owner >= 0].sum() >= ALIKE * time[linked].sum():
            owner[rows] = event_owner
            repeating += [step] if step in chosen.selected else []
    return repeating, owner, len(chosen.selected) - len(repeating)


def _replaying_alike(replays: Replays, links: Links, chosen: Chosen, repeating: list[int], owner: Rows) -> list[int]:
    """Return the repeating steps whose graphs run the same captured ops as those of the counted step.

    A graph for another size of the batch is launched by the same call, and is other work.
    """

    def ops(step: int) -> bytes:
        rows = np.flatnonzero(links.graph & (owner >= 0) & (chosen.step == step))
        return np.unique(np.stack([owner[rows], replays.op[rows]]), axis=1).tobytes()

    counted_ops = ops(chosen.counted)
    return [step for step in repeating if step == chosen.counted or ops(step) == counted_ops]
