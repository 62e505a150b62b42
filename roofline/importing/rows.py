"""The rows of an imported step: its counted ops, and behind them the device events that no op of it explains.

A kernel that a graph replayed, that was launched before the trace began, or that is in no call of the counted step is a
row of its own, with what is known of it and the reason for what is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.batch import Batch
from roofline.core.cost import unknown
from roofline.core.vocabulary import OpClass, Quality
from roofline.costs import kernel_names
from roofline.costs.counted import PHASES, Costed, Counted, CountedOp
from roofline.importing.capture import Replays
from roofline.importing.unclaimed import REPLAYED, longest, lost
from roofline.importing.work import costs
from roofline.traces.kineto.links import Links, alike_kernels
from roofline.traces.kineto.reader import KERNEL, KinetoTrace
from roofline.traces.rows import Rows

BEFORE = "launched before the trace began, or the launch is not in it"
UNRECORDED = "the trace holds no call that launches anything, so that nothing says what launched it"
UNCAPTURED = "replayed from a graph of which no capture at hand runs the same kernels"
UNSURE = (
    "replayed from a graph of which captures with other shapes fit as well, and nothing recorded tells which it was"
)
REPEATED = "its ids are repeated or contradict each other, so that its launch is not known"
DIFFERENT = "in a part of the step that is not in the counted one"
_TIMELESS = "a kernel of it has no duration in the trace"
_PLACES = {BEFORE: "(launched before the trace)", REPEATED: "(not joined to a launch)", UNRECORDED: ""}
_TWIN = "launched before the window; its twin's work"


def phases(counted: Counted) -> Rows:
    """Return the phase of each op; an op that exists only as a gradient is of the backward phase on any thread."""
    gradient = [name.startswith("aten::") and "_backward" in name for name in counted.names_of_ops]
    forward, backward = PHASES.index("forward"), PHASES.index("backward")
    return np.where(np.asarray(gradient, bool) & (counted.phase == forward), backward, counted.phase)


class Table:
    """The rows of the profile: the counted ops, and behind them the kernels that a graph or nothing launched."""

    def __init__(
        self,
        trace: KinetoTrace,
        links: Links,
        counted: Counted,
        replays: Replays | None,
        batches: Mapping[int, Batch | None],
    ) -> None:
        """batches: of the serving engine in whose step each counted graph launch lies, by its number."""
        self._batches = batches
        self._trace, self._links, self._base, self._replays = trace, links, counted, replays
        self._before = BEFORE if len(trace.launches) else UNRECORDED
        self._ops = list(counted.ops)
        self._names = list(counted.names_of_ops)
        self._scopes = list(counted.scopes)
        self._scope, self._phase = counted.scope.tolist(), phases(counted).tolist()
        self._rows: dict[object, int] = {}
        self._without: set[int] = set()
        self._twins: dict[int, Costed] = {}

    def complete(self, owner: Rows, in_steps: NDArray[np.bool_], counted: NDArray[np.bool_]) -> Rows:
        """Return `owner` with a row for every device event of the steps used (in_steps: bool[device])."""
        owner = owner.copy()
        graph = np.flatnonzero(in_steps & self._links.graph & (owner >= 0))
        owner[graph] = self._by_graph(graph, owner[graph])
        owner = self._by_twin(owner, counted)
        unowned = np.flatnonzero(in_steps & (owner < 0))
        owner[unowned] = self._copies(unowned, 0)
        unowned = unowned[owner[unowned] < 0]
        why = np.where(self._links.unsure[unowned], 2, self._links.launch[unowned] < 0).astype(np.int32)
        codes, place = np.unique(np.stack([self._trace.device.name[unowned], why]), axis=1, return_inverse=True)
        reasons = (DIFFERENT, self._before, REPEATED)
        lost_rows = [self._lost(self._trace.names[name], reasons[reason]) for name, reason in codes.T.tolist()]
        owner[unowned] = np.asarray([*lost_rows, -1], np.int64)[place.ravel()]
        return owner

    def _add(
        self, key: object, name: str, costed: Costed, scope: int, phase: int, op: bool, line: str | None = None
    ) -> int:
        if key not in self._rows:
            self._rows[key] = len(self._ops)
            if not op:
                self._without.add(len(self._ops))
            reads, writes = (-1,) * len(costed.reads), (-1,) * len(costed.writes)
            self._ops.append(CountedOp(-1, costed, reads, writes, line=line))
            self._names.append(name)
            self._scope.append(scope)
            self._phase.append(phase)
        return self._rows[key]

    def _place(self, scope: str) -> int:
        if scope not in self._scopes:
            self._scopes.append(scope)
        return self._scopes.index(scope)

    def _lost(self, name: str, why: str) -> int:
        scope = self._place(_PLACES.get(why, "(not in every step)"))
        return self._add((why, name), name, lost(name, why), scope, 0, False)

    def _copies(self, events: Rows, phase: int) -> Rows:
        """Rows for copies and fills, one each: they say their work themselves. -1 for what is none."""
        copy_rows = np.full(len(events), -1, np.int64)
        for place in np.flatnonzero(self._trace.device.kind[events] != KERNEL).tolist():
            event = int(events[place])
            costed = costs.lone(self._trace, event)
            if costed is not None:
                name = self._trace.names[int(self._trace.device.name[event])]
                why = REPEATED if self._links.unsure[event] else self._before if self._links.launch[event] < 0 else ""
                scope = self._place(_PLACES.get(why, ""))
                copy_rows[place] = self._add(("copy", event), name, costed, scope, phase, True)
        return copy_rows

    def _by_graph(self, events: Rows, base: Rows) -> Rows:
        """Rows for replayed kernels: one per graph launch and captured op, or per graph launch and kernel name."""
        device, replays = self._trace.device, self._replays
        captured = replays.op[events] if replays else np.full(len(events), -1, np.int64)
        unsure = replays.unsure[events] if replays else np.zeros(len(events), bool)
        name = np.where(captured >= 0, -1, device.name[events])
        keys, place = np.unique(np.stack([base, captured, name, unsure]), axis=1, return_inverse=True)
        # Joining the captures once for each batch: there is a key for each captured op.
        batches = {self._batches.get(number) for number in np.unique(base).tolist()}
        counts = {batch: replays.counted(batch) for batch in batches} if replays else {}
        replayed_rows = []
        for number, op, code, several in keys.T.tolist():
            scope, phase = self._scope[number], self._phase[number]
            if op >= 0:
                of = counts[self._batches.get(number)]
                scope = self._place(of.scopes[int(of.scope[op])]) if of.scopes[int(of.scope[op])] else scope
                phase = phase or int(of.phase[op])
                captured_op = of.ops[op]
                replayed_rows.append(
                    self._add(
                        (number, op), of.names_of_ops[op], captured_op.costed, scope, phase, True, captured_op.line
                    )
                )
            else:
                kernel = self._trace.names[code]
                why = UNSURE if several else REPLAYED if replays is None else UNCAPTURED
                replayed_rows.append(
                    self._add((number, -1, code, several), kernel, lost(kernel, why), scope, phase, False)
                )
        return np.asarray(replayed_rows, np.int64)[place.ravel()]

    def _by_twin(self, owner: Rows, counted: NDArray[np.bool_]) -> Rows:
        """Rows for kernels launched before the trace began whose like was launched by ops of one cost in this step.

        A kernel whose ids are damaged has none: it was not launched before the trace, and whose it is is not known.
        Alike are kernels of one name, grid, block and size. Several kernels of one call are one row: as many calls as
        the op's kernels of that name make.
        """
        links, device = self._links, self._trace.device
        lost = np.flatnonzero(counted & (owner < 0) & (links.launch < 0) & ~links.unsure)
        examples = np.flatnonzero(counted & (owner >= 0) & (links.op >= 0) & np.isin(device.name, device.name[lost]))
        if not len(lost) or not len(examples):
            return owner
        alike = alike_kernels(device, np.concatenate([lost, examples]))
        works: dict[object, int] = {}
        work = np.asarray(
            [works.setdefault(_work(self._names[row], self._ops[row].costed), row) for row in owner[examples].tolist()]
        )
        least, greatest = np.full(alike.max() + 1, len(self._ops)), np.full(alike.max() + 1, -1)
        np.minimum.at(least, alike[len(lost) :], work)
        np.maximum.at(greatest, alike[len(lost) :], work)
        example = np.where(least == greatest, greatest, -1)[alike[: len(lost)]]
        events, example, kernel = lost[example >= 0], example[example >= 0], alike[: len(lost)][example >= 0]
        # How many such kernels one call launches: those of the step, divided by its calls of that work.
        calls = np.unique(np.stack([work, owner[examples]]), axis=1)[0]
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

    def counted(self, owner: Rows, in_steps: NDArray[np.bool_]) -> Counted:
        """All rows; ops of unknown work and class get the class of the kernel that took most of their time.

        An op has no work to hold a time against where a kernel of it in a kept step has none: every kernel takes time,
        and one of 0 ns is damaged.
        """
        rows = np.flatnonzero(owner >= 0)
        names = longest(self._trace, rows, owner[rows])
        timeless = set(owner[rows[in_steps[rows] & (self._trace.device.duration[rows] == 0)]].tolist())
        # By the work as the op was given it, which lives as long as the op: the id of what is made here is used again.
        shared: dict[tuple[int, bool, OpClass], Costed] = {}
        ops = []
        for row, op in enumerate(self._ops):
            costed = op.costed
            if row in timeless:
                costed = replace(costed, cost=unknown(_TIMELESS), reads=(), writes=(), parts=())
            if costed.cost.quality == "unknown" and costed.op_class == "other" and row in names:
                op_class = kernel_names.classify(names[row])
                key = (id(op.costed), row in timeless, op_class)
                costed = shared.setdefault(key, replace(costed, op_class=op_class))
            if row in timeless:
                op = replace(op, reads=(), writes=())
            ops.append(op if costed is op.costed else replace(op, costed=costed))
        return replace(
            self._base,
            host_reads=None,
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
    """Return a key that ops of equal work share, whatever the strides and values they were called with."""
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
