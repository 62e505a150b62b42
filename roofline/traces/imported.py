"""From an imported Kineto trace of a GPU to the counted ops of a step and their times.

One step is counted, and the other steps are laid over it call by call. Every device event stays in the busy time,
whoever asked for it: what has no op is a row of its own, named after its kernel, with the reason why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.cost import unknown
from roofline.core.vocabulary import OpClass, Quality
from roofline.errors import MeasurementError
from roofline.traces import (
    communication,
    counting,
    idle,
    import_costs,
    imported_steps,
    intervals,
    kernel_names,
    nesting,
    steps,
)
from roofline.traces.calls import Call
from roofline.traces.counted import Costed, Counted, CountedOp
from roofline.traces.counting import Generated, Nodes
from roofline.traces.import_costs import Costs
from roofline.traces.imported_calls import LAUNCH, OP, Path, StepCalls, calls, marked, path
from roofline.traces.imported_capture import Capture, Replays
from roofline.traces.imported_steps import Chosen
from roofline.traces.kineto import KERNEL, KinetoTrace
from roofline.traces.link import Links, alike_kernels, link
from roofline.traces.steps import Steps
from roofline.traces.timing_cuda import TimedCuda, kernel_times

Rows = NDArray[np.int64]

#: A step of which less than this share of the device time repeats the counted step is another kind of step.
ALIKE = 0.9

BEFORE = "launched before the trace began, or the launch is not in it"
REPLAYED = "replayed from a graph, which does not say for which op: import with --capture, or record a step without"
DIFFERENT = "in a part of the step that is not in the counted one"
OUTSIDE = "launched by code that is no op of the framework"
_TWIN = "launched before the window; its twin's work"


@dataclass(frozen=True, slots=True)
class Figures:
    """What the whole trace says, steps or not. Times in seconds.

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
class Imported:
    """A step of a trace. found: steps the trace holds; source: what marks them, "" where nothing does.

    communication: time in collectives per kept step, and exposed: of it what no other kernel runs beside [s].
    warnings: what was left out or assumed, in sentences. shapes: whether any counted call has its arguments.
    """

    counted: Counted
    timed: TimedCuda
    figures: Figures
    found: int
    source: str
    shapes: bool
    chosen: Chosen
    communication: float
    exposed: float
    warnings: tuple[str, ...]


def read(trace: KinetoTrace, costs: Costs, capture: KinetoTrace | None = None) -> Imported:
    """The counted ops of a step and their times in every step that repeats it.

    capture: the trace of the graphs' capture: tells the op of each kernel that a graph replays. Raises MeasurementError
    where the trace holds no device event.
    """
    if not len(trace.device):
        raise MeasurementError("No kernel and no copy of a device is left in the trace; record it again.")
    links = link(trace)
    marks = steps.find(trace, links=links)
    chosen = imported_steps.choose(trace, links, marks)
    on = path(trace, links)
    counted_calls = calls(trace, on, [chosen.host[chosen.counted]])
    plain = costs.nodes(trace, counted_calls.events, links, counted_calls.ops)
    nodes = marked(plain, counted_calls)
    generated = import_costs.kernels(trace, links, plain)
    here = np.flatnonzero(chosen.step == chosen.counted)
    generated |= _unclaimed(trace, links, here, counted_calls, nodes, costs, generated)
    counted = counting.count(nodes, costs, generated)  # type: ignore[arg-type]  # the same protocol
    number = _numbers(nodes, counted)

    replays = None if capture is None else Capture(capture, costs).replays(trace, links)
    kept, owner, differing = _owners(trace, links, on, chosen, counted_calls, number)
    table = _Table(trace, links, counted, replays)
    owner = table.complete(owner, _within(trace, chosen, kept), chosen.step == chosen.counted)
    counted = table.counted(owner)
    timed = _timed(trace, links, chosen, kept, owner, counted, table.linked(owner))
    stretches = [communication.exposed(trace, links, None, int(chosen.low[n]), int(chosen.high[n])) for n in kept]
    known = (nodes.call(index) for index in _first_nodes(number).tolist() if "::" in nodes.names[index])
    return Imported(
        counted=counted,
        timed=timed,
        figures=_figures(trace, links, table.twinned(owner)),
        found=len(marks),
        source=marks.source,
        shapes=any(call.inputs for call in known),
        chosen=replace(chosen, kept=tuple(kept)),
        communication=sum(one.total for one in stretches) / len(kept),
        exposed=sum(one.exposed for one in stretches) / len(kept),
        warnings=(*_left_out(chosen, marks, differing), *_unjoined(links), *(replays.warnings if replays else ())),
    )


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


def _left_out(chosen: Chosen, marks: Steps, differing: int) -> list[str]:
    told = [str(marks.repeated)] if marks.repeated is not None and len(marks) == 1 else []
    for number, why in (
        (chosen.incomplete, "whose launches are not all in the trace"),
        (chosen.dropped, "which took far longer or shorter than the others"),
        (differing, "which do not do what the counted step does"),
    ):
        if number:
            told.append(f"{number} {'step' if number == 1 else 'steps'} left out, {why}")
    return told


def _unjoined(links: Links) -> list[str]:
    """What the ids of the trace got wrong: no join is better than a wrong one, but it is told."""
    if not links.damaged:
        return []
    events = "1 device event was" if links.damaged == 1 else f"{links.damaged} device events were"
    return [f"{events} joined to no launch, because ids are repeated or contradict each other"]


def _within(trace: KinetoTrace, chosen: Chosen, kept: list[int]) -> NDArray[np.bool_]:
    """bool[device]: the event is of a kept step, or runs in the window of one."""
    low, high = chosen.low[kept], chosen.high[kept]
    # Windows are in order and disjoint: the first that ends after the event's start is the only one to look at.
    at = np.searchsorted(high, trace.device.start, "right")
    begins = np.append(low, np.iinfo(np.int64).max)[at]
    return np.isin(chosen.step, kept) | (trace.device.end > begins)


# ---------------------------------------------------------------------------------------------- whose kernels


def _unclaimed(
    trace: KinetoTrace,
    links: Links,
    here: Rows,
    step: StepCalls,
    nodes: Nodes,
    costs: Costs,
    given: Mapping[int, Generated],
) -> dict[int, Generated]:
    """Ops of their own for the device events `here` that no op of the framework's computes.

    The innermost call around a launch, where it holds nothing else that has work; else the launch itself. A graph is
    one op for now, to be taken apart.
    """
    is_op = nodes.is_op.copy()
    is_op[list(given)] = True
    unit = nesting.outermost(nodes.parent, is_op)
    unit = np.append(unit, -1)
    op = step.index(OP, len(trace.ops))[links.op[here]]
    launch = step.index(LAUNCH, len(trace.launches))[links.launch[here]]
    free = (unit[op] < 0) & (unit[launch] < 0)
    by_graph = links.graph[here]
    graphs = np.unique(launch[by_graph & (launch >= 0) & (unit[launch] < 0)])
    inner = np.unique(op[free & ~by_graph & (op >= 0)])
    holds = _holders(nodes.parent, np.concatenate([np.flatnonzero(unit[:-1] >= 0), inner, graphs]))
    leaf = np.append(np.zeros(len(nodes), bool), False)
    leaf[inner] = ~holds[inner]
    found: dict[int, Generated] = {}
    owner = np.where(free & ~by_graph, np.where(leaf[op], op, launch), -1)
    for index, name in _longest(trace, here, owner).items():
        if step.table[index] == OP:
            found[index] = _generated(nodes.names[index], _inside(nodes.call(index), costs, name))
        else:
            event = int(here[np.flatnonzero(owner == index)[0]])
            found[index] = _generated(name, import_costs.lone(trace, event) or lost(name, OUTSIDE))
    return found | {index: _generated(nodes.names[index], lost("", REPLAYED)) for index in graphs.tolist()}


def _holders(parent: Rows, nodes: Rows) -> NDArray[np.bool_]:
    """Which nodes hold one of `nodes` below them."""
    found = np.zeros(len(parent), bool)
    current = np.unique(parent[nodes])
    while len(current := current[current >= 0]):
        current = current[~found[current]]
        found[current] = True
        current = np.unique(parent[current])
    return found


def _longest(trace: KinetoTrace, events: Rows, owner: Rows) -> dict[int, str]:
    """For each owner (but -1) the name of the kernel that took most of its time."""
    rows = np.flatnonzero(owner >= 0)
    pairs, place = np.unique(np.stack([owner[rows], trace.device.name[events[rows]]]), axis=1, return_inverse=True)
    time = np.bincount(place.ravel(), weights=trace.device.duration[events[rows]], minlength=pairs.shape[1])
    order = np.argsort(time, kind="stable").tolist()
    return {int(pairs[0, column]): trace.names[int(pairs[1, column])] for column in order}


def _generated(name: str, costed: Costed) -> Generated:
    return Generated(
        name=name,
        costed=costed,
        reads=(-1,) * len(costed.reads),
        writes=(-1,) * len(costed.writes),
        scope=None,
        places=(),
    )


def _inside(call: Call, costs: Costs, kernel: str) -> Costed:
    """A call that is no op by the rules and launches kernels itself, as a wrapper with a kernel of its own does."""
    if "::" in call.name:
        costed = costs.cost(call)
        if not costed.view:
            return costed
    return lost(kernel, f"the work of {call.name[:80]} is not known")


def lost(kernel: str, why: str) -> Costed:
    """The cost of a kernel without an op: its class by its name, its work unknown."""
    return Costed(
        cost=unknown(why), kind="kernel", op_class=kernel_names.classify(kernel), shapes="", dtype=None, output=None
    )


def _numbers(nodes: Nodes, counted: Counted) -> Rows:
    """int64[nodes]: the number of the counted op that each node is or lies in, -1 for none."""
    kept = np.asarray([not name.startswith("roofline:") for name in nodes.names], bool)
    found = np.full(len(nodes), -1, np.int64)
    found[kept] = counted.op_of
    return found


def _owners(
    trace: KinetoTrace, links: Links, on: Path, chosen: Chosen, counted: StepCalls, number: Rows
) -> tuple[list[int], Rows, int]:
    """The steps that repeat the counted one, the counted op of each of their device events, and how many do not."""
    owner = np.full(len(trace.device), -1, np.int64)
    kept: list[int] = []
    for step in range(len(chosen.host)):
        rows = np.flatnonzero(chosen.step == step)
        if step == chosen.counted:
            here, twin = counted, np.arange(len(counted))
        else:
            here = calls(trace, on, [chosen.host[step]])
            twin = imported_steps.aligned(here, counted)
        mine, known = np.append(np.append(number, -1)[twin], -1), np.append(twin >= 0, True)
        op = here.index(OP, len(trace.ops))[links.op[rows]]
        by_op = mine[op]
        # A launch is like any other launch: it tells something only where it lies in the same call, or in none.
        by_launch = np.where(known[op], mine[here.index(LAUNCH, len(trace.launches))[links.launch[rows]]], -1)
        found = np.where((by_op >= 0) & ~links.graph[rows], by_op, np.where(by_launch >= 0, by_launch, by_op))
        time = trace.device.duration[rows]
        linked = (links.op[rows] >= 0) | (links.launch[rows] >= 0)
        if step == chosen.counted or time[found >= 0].sum() >= ALIKE * time[linked].sum():
            owner[rows] = found
            kept += [step] if step in chosen.kept else []
    return kept, owner, len(chosen.kept) - len(kept)


class _Table:
    """The rows of the profile: the counted ops, and behind them the kernels that a graph or nothing launched."""

    def __init__(self, trace: KinetoTrace, links: Links, counted: Counted, replays: Replays | None) -> None:
        self._trace, self._links, self._base, self._replays = trace, links, counted, replays
        self._ops = list(counted.ops)
        self._names = list(counted.names_of_ops)
        self._scopes = list(counted.scopes)
        self._scope, self._phase = counted.scope.tolist(), counted.phase.tolist()
        self._rows: dict[object, int] = {}
        self._without: set[int] = set()
        self._twins: dict[int, Costed] = {}

    def complete(self, owner: Rows, kept: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Rows:
        """`owner` with a row for every device event of the kept steps."""
        owner = owner.copy()
        graph = np.flatnonzero(kept & self._links.graph & (owner >= 0))
        owner[graph] = self._by_graph(graph, owner[graph])
        owner = self._by_twin(owner, counted)
        left = np.flatnonzero(kept & (owner < 0))
        owner[left] = self._copies(left, 0)
        left = left[owner[left] < 0]
        orphan = self._links.launch[left] < 0
        codes, place = np.unique(
            np.stack([self._trace.device.name[left], orphan.astype(np.int32)]), axis=1, return_inverse=True
        )
        made = [self._lost(self._trace.names[name], BEFORE if late else DIFFERENT) for name, late in codes.T.tolist()]
        owner[left] = np.asarray([*made, -1], np.int64)[place.ravel()]
        return owner

    def _add(self, key: object, name: str, costed: Costed, scope: int, phase: int, op: bool) -> int:
        if key not in self._rows:
            self._rows[key] = len(self._ops)
            if not op:
                self._without.add(len(self._ops))
            reads, writes = (-1,) * len(costed.reads), (-1,) * len(costed.writes)
            self._ops.append(CountedOp(-1, costed, reads, writes))
            self._names.append(name)
            self._scope.append(scope)
            self._phase.append(phase)
        return self._rows[key]

    def _place(self, scope: str) -> int:
        if scope not in self._scopes:
            self._scopes.append(scope)
        return self._scopes.index(scope)

    def _lost(self, name: str, why: str) -> int:
        scope = self._place("(launched before the trace)" if why is BEFORE else "(not in every step)")
        return self._add((why, name), name, lost(name, why), scope, 0, False)

    def _copies(self, events: Rows, phase: int) -> Rows:
        """Rows for copies and fills, one each: they say their work themselves. -1 for what is none."""
        found = np.full(len(events), -1, np.int64)
        for place in np.flatnonzero(self._trace.device.kind[events] != KERNEL).tolist():
            event = int(events[place])
            costed = import_costs.lone(self._trace, event)
            if costed is not None:
                name = self._trace.names[int(self._trace.device.name[event])]
                scope = self._place("(launched before the trace)" if self._links.launch[event] < 0 else "")
                found[place] = self._add(("copy", event), name, costed, scope, phase, True)
        return found

    def _by_graph(self, events: Rows, base: Rows) -> Rows:
        """Rows for replayed kernels: one per graph launch and captured op, or per graph launch and kernel name."""
        device, replays = self._trace.device, self._replays
        captured = replays.op[events] if replays else np.full(len(events), -1, np.int64)
        name = np.where(captured >= 0, -1, device.name[events])
        keys, place = np.unique(np.stack([base, captured, name]), axis=1, return_inverse=True)
        found = []
        for number, op, code in keys.T.tolist():
            scope, phase = self._scope[number], self._phase[number]
            if op >= 0 and replays is not None:
                of = replays.counted
                scope = self._place(of.scopes[int(of.scope[op])]) if of.scopes[int(of.scope[op])] else scope
                phase = phase or int(of.phase[op])
                found.append(self._add((number, op), of.names_of_ops[op], of.ops[op].costed, scope, phase, True))
            else:
                kernel = self._trace.names[code]
                found.append(self._add((number, -1, code), kernel, lost(kernel, REPLAYED), scope, phase, False))
        return np.asarray(found, np.int64)[place.ravel()]

    def _by_twin(self, owner: Rows, counted: NDArray[np.bool_]) -> Rows:
        """Rows for kernels launched before the trace began whose like was launched by ops of one cost in this step.

        Alike are kernels of one name, grid, block and size. Several kernels of one call are one row: as many calls as
        the op's kernels of that name make.
        """
        links, device = self._links, self._trace.device
        lost = np.flatnonzero(counted & (owner < 0) & (links.launch < 0))
        known = np.flatnonzero(counted & (owner >= 0) & (links.op >= 0) & np.isin(device.name, device.name[lost]))
        if not len(lost) or not len(known):
            return owner
        alike = alike_kernels(device, np.concatenate([lost, known]))
        works: dict[object, int] = {}
        work = np.asarray(
            [works.setdefault(_work(self._names[row], self._ops[row].costed), row) for row in owner[known].tolist()]
        )
        least, most = np.full(alike.max() + 1, len(self._ops)), np.full(alike.max() + 1, -1)
        np.minimum.at(least, alike[len(lost) :], work)
        np.maximum.at(most, alike[len(lost) :], work)
        example = np.where(least == most, most, -1)[alike[: len(lost)]]
        events, example, kernel = lost[example >= 0], example[example >= 0], alike[: len(lost)][example >= 0]
        # How many such kernels one call launches: those of the step, divided by its calls of that work.
        calls = np.unique(np.stack([work, owner[known]]), axis=1)[0]
        launched = np.bincount(alike[len(lost) :], minlength=alike.max() + 1)[kernel]
        per_call = np.maximum(1, launched // np.bincount(calls, minlength=len(self._ops))[example])
        rank = _ranks(kernel)
        owner = owner.copy()
        scope = self._place("(launched before the trace)")
        for event, number, call in zip(events.tolist(), example.tolist(), (rank // per_call).tolist(), strict=True):
            costed = self._assumed(self._ops[number].costed)
            owner[event] = self._add(
                ("twin", number, call), self._names[number], costed, scope, self._phase[number], True
            )
        return owner

    def _assumed(self, costed: Costed) -> Costed:
        if id(costed) not in self._twins:
            note = "; ".join(filter(None, (_TWIN, costed.cost.note)))
            quality: Quality = "unknown" if costed.cost.quality == "unknown" else "assumed"
            cost = msgspec.structs.replace(costed.cost, quality=quality, note=note)
            self._twins[id(costed)] = replace(costed, cost=cost)
        return self._twins[id(costed)]

    def linked(self, owner: Rows) -> NDArray[np.bool_]:
        """bool[device]: the event has an op."""
        without = np.zeros(len(self._ops) + 1, bool)
        without[[*self._without, -1]] = True
        return ~without[owner]

    def twinned(self, owner: Rows) -> NDArray[np.bool_]:
        """bool[device]: the event has the op of its twin."""
        twins = np.zeros(len(self._ops) + 1, bool)
        twins[[row for key, row in self._rows.items() if isinstance(key, tuple) and key[0] == "twin"]] = True
        return twins[owner]

    def counted(self, owner: Rows) -> Counted:
        """All rows; ops of unknown work and class get the class of the kernel that took most of their time."""
        rows = np.flatnonzero(owner >= 0)
        longest = _longest(self._trace, rows, owner[rows])
        same: dict[tuple[int, OpClass], Costed] = {}
        ops = []
        for row, op in enumerate(self._ops):
            costed = op.costed
            if costed.cost.quality == "unknown" and costed.op_class == "other" and row in longest:
                op_class = kernel_names.classify(longest[row])
                costed = same.setdefault((id(costed), op_class), replace(costed, op_class=op_class))
            ops.append(op if costed is op.costed else replace(op, costed=costed))
        return replace(
            self._base,
            names=(),
            thread=np.zeros(0, np.int64),
            parent=np.zeros(0, np.int64),
            op_of=np.zeros(0, np.int64),
            view_of=np.zeros(0, bool),
            ops=tuple(ops),
            names_of_ops=tuple(self._names),
            scopes=tuple(self._scopes),
            scope=np.asarray(self._scope, np.int64),
            phase=np.asarray(self._phase, np.int64),
        )


def _work(name: str, costed: Costed) -> object:
    """What ops of equal work share, whatever the strides and values they were called with."""
    cost = costed.cost
    return name, costed.dtype, costed.op_class, cost.flops, cost.vector_flops, cost.bytes_read, cost.bytes_written


def _ranks(values: Rows) -> Rows:
    """For each element how many equal ones lie before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.searchsorted(ordered, ordered, "left")
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values)) - first
    return rank


# ---------------------------------------------------------------------------------------------- times


def _timed(
    trace: KinetoTrace,
    links: Links,
    chosen: Chosen,
    kept: list[int],
    owner: Rows,
    counted: Counted,
    linked: NDArray[np.bool_],
) -> TimedCuda:
    """The times of all rows in the kept steps; see `timing_cuda`, which does the same for a live trace.

    A window holds what ran in it, of whichever step: steps that overlap on several streams lend each other as much as
    they borrow, and busy and idle time add up to the window.
    """
    device, total = trace.device, len(counted.ops)
    own, shares = np.zeros((total, len(kept))), np.zeros((total, len(kept)))
    for column, number in enumerate(kept):
        begin, end = chosen.low[number], chosen.high[number]
        rows = np.flatnonzero((device.start < end) & (device.end > begin))
        clipped = np.clip(device.start[rows], begin, end), np.clip(device.end[rows], begin, end)
        spans = *clipped, owner[rows], total
        own[:, column] = intervals.own(*spans) * 1e-9
        shares[:, column] = intervals.shares(*spans) * 1e-9
    low, high = chosen.low[kept], chosen.high[kept]
    gaps = idle.causes(trace, links, low, high)
    here = np.isin(chosen.step, kept)
    first = np.flatnonzero(chosen.step == kept[0])
    start = np.full(total, np.iinfo(np.int64).max)
    np.minimum.at(start, owner[first], device.start[first])
    walls = (high - low).astype(np.float64) * 1e-9
    time = device.duration[here]
    replayed = links.graph & here
    lost = replayed & ~linked
    kernels = np.bincount(owner[here & (device.kind == KERNEL)], minlength=total)
    return TimedCuda(
        own=own,
        overlap=(own - shares).mean(axis=1),
        start=np.where(start < np.iinfo(np.int64).max, start - low[0], 0) * 1e-9,
        walls=walls,
        corrected=walls,
        idle=np.bincount(gaps.window, weights=(gaps.end - gaps.start) * 1e-9, minlength=len(kept)).astype(float),
        causes={name: seconds / len(kept) for name, seconds in gaps.seconds().items() if seconds > 0},
        joined=float(time[linked[here]].sum() / time.sum()) if time.sum() else 0.0,
        events=round(int(here.sum()) / len(kept)),
        dropped=chosen.dropped,
        unmatched={},
        kernels=kernel_times(trace, owner, here, total, len(kept)),
        kernel_names=trace.names,
        launches=np.rint(kernels / len(kept)).astype(np.int64),
        graph_launches=round(len(np.unique(links.launch[replayed])) / len(kept)),
        replayed=np.rint(np.bincount(owner[replayed], minlength=total) / len(kept)).astype(np.int64),
        unattributed=round(int(lost.sum()) / len(kept)),
        unattributed_time=float(device.duration[lost].sum()) * 1e-9 / len(kept),
    )
