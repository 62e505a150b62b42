"""Count the ops of a captured graph: what the program launched while it was captured, as if it had run.

A captured launch is recorded with the ops around it and runs nothing. Taken for a kernel that ran, it is counted by the
rules of any other: ops of the framework, generated kernels, ops of libraries, launches without an op.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roofline.core.batch import Batch
from roofline.costs.counted import NOTHING, Counted
from roofline.importing.calls import LAUNCH, OP, StepCalls, calls, marked, path
from roofline.importing.python_frames import with_python
from roofline.importing.unclaimed import unclaimed
from roofline.importing.work import foreign_calls
from roofline.pytorch import count
from roofline.traces.kineto.batches import Always
from roofline.traces.kineto.links import Links, link
from roofline.traces.kineto.reader import KERNEL, MEMCPY, MEMSET, KinetoTrace
from roofline.traces.rows import Rows

if TYPE_CHECKING:
    from roofline.importing.work.costs import Costs

_KINDS = {"memcpy": MEMCPY, "memset": MEMSET}


class Captured:
    """The captured launches of a trace, and their ops.

    op: int64[launches], for each launch of the trace the number of its op, or -1. with_arguments: bool[ops], whether
    the op's arguments were recorded.
    """

    def __init__(self, trace: KinetoTrace, costs: Costs, launched: Mapping[int, str]) -> None:
        """launched: the name of the kernel of each captured launch, by its row; "memcpy", "memset" for these."""
        rows = np.asarray(sorted(launched), np.int64)
        self._trace, self._links = _as_if_ran(trace, link(trace), rows, [launched[row] for row in rows.tolist()])
        self._costs, self._rows = costs, rows
        self._step = self._calls()
        self._plain = costs.nodes(self._trace, self._step.events, self._links, self._step.ops)
        self._nodes = marked(self._plain, self._step)
        self._counted: dict[Batch | None, Counted] = {}
        self.op = np.full(len(trace.launches), -1, np.int64)
        counted = self.counted(None)
        framework_calls = np.asarray([not name.startswith("roofline:") for name in self._nodes.names], bool)
        number = np.full(len(self._nodes) + 1, -1, np.int64)
        number[:-1][framework_calls] = counted.op_of
        by_op = number[self._step.index(OP, len(trace.ops))[self._links.op]]
        by_launch = number[self._step.index(LAUNCH, len(trace.launches))[rows]]
        self.op[rows] = np.where(by_op >= 0, by_op, by_launch)
        self.with_arguments = np.zeros(len(counted.ops), bool)
        nodes_of, first = np.unique(number[:-1], return_index=True)
        for op, node in zip(nodes_of.tolist(), first.tolist(), strict=True):
            if op >= 0 and "::" in self._nodes.names[node]:
                self.with_arguments[op] = bool(self._nodes.call(node).inputs)

    def counted(self, batch: Batch | None) -> Counted:
        """The captured ops, with the work that they have in a step of a batch; their numbers do not depend on it."""
        if batch not in self._counted:
            generated = foreign_calls.kernels(self._trace, self._links, self._plain, Always(batch), self._costs.sources)
            events = np.arange(len(self._rows))
            generated |= unclaimed(self._trace, self._links, events, self._step, self._nodes, self._costs, generated)
            self._counted[batch] = count.count(self._nodes, self._costs, generated)
        return self._counted[batch]

    def _calls(self) -> StepCalls:
        trace, start = self._trace, self._trace.launches.start[self._rows]
        on = path(trace, self._links)
        if not len(start):
            return calls(trace, on, [])
        begin = min(int(start.min()), int(trace.ops.start.min(initial=start.min())))
        return with_python(trace, calls(trace, on, [(begin, int(start.max()))]))


def joined(parts: Sequence[Counted]) -> Counted:
    """The ops of several counts, one after the other, each with its scope and phase."""
    if len(parts) == 1:
        return parts[0]
    scopes: dict[str, int] = {}
    places = [
        np.asarray([scopes.setdefault(scope, len(scopes)) for scope in part.scopes], np.int64)[part.scope]
        for part in parts
    ]
    return replace(
        NOTHING,
        ops=tuple(op for part in parts for op in part.ops),
        names_of_ops=tuple(name for part in parts for name in part.names_of_ops),
        scopes=tuple(scopes),
        scope=np.concatenate(places),
        phase=np.concatenate([part.phase for part in parts]),
    )


def _as_if_ran(trace: KinetoTrace, links: Links, rows: Rows, names: list[str]) -> tuple[KinetoTrace, Links]:
    """The trace with a device event for each of the launches in `rows`, and no other, and its links."""
    codes: dict[str, int] = {}
    code = np.asarray([codes.setdefault(name, len(codes)) for name in names], np.int32)
    events = trace.launches.select(rows)
    kinds = np.asarray([_KINDS.get(name, KERNEL) for name in names], np.int8)
    # Each takes as long as any other: nothing is known of their times.
    device = replace(events, name=code + len(trace.names), kind=kinds, end=events.start + 1)
    none: NDArray[np.bool_] = np.zeros(len(rows), bool)
    ran = replace(
        links, launch=rows, op=links.launch_op[rows], by_id=none, graph=none, unsure=none, damaged=0, clashing=0
    )
    return replace(trace, device=device, names=(*trace.names, *codes)), ran
