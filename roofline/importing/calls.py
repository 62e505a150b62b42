"""The calls of one step of an imported trace that lead to work on the device: ops, launches and the user's ranges.

Most ops of a trace launch nothing themselves and hold no op that does (views, wrappers of shapes); only those on the
way to a device event are decoded, which keeps a trace of a million events to a few thousand calls per step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.costs.calls import Call
from roofline.pytorch.count import EVALUATE, LINE, PHASE, SCOPE
from roofline.pytorch.nodes import Nodes
from roofline.traces.kineto import python_calls
from roofline.traces.kineto.batches import batch
from roofline.traces.kineto.events import COLUMNS, Events
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.rows import Rows

OP, LAUNCH, ANNOTATION, MODULE, LINE_MARK = range(5)

#: Annotations that frameworks make around their own work: they are no part of a model.
_NO_SCOPE = re.compile(
    r"ProfilerStep#|nccl:|gloo:|mpi:|Torch-Compiled Region|TorchDynamo |## Call CompiledFxGraph|AOTDispatcher "
    r"|Pregraph bytecode|CompiledFunction|Optimizer\.|PyTorch Profiler|cudaGraph|CUDAGraphNode\."
    r"|capture_\d+(_|$)|roofline:"
)
_OPTIMIZER = re.compile(r"\W*optim(izer)?([._ ]?step)?\W*", re.IGNORECASE)
_BACKWARD = re.compile(r"\W*backward([._ ]?pass)?\W*", re.IGNORECASE)
#: Nodes of autograd's engine, as profilers wrote them before the engine made an annotation around each.
_GRADIENT = re.compile(r"\w+Backward\d*|torch::autograd::AccumulateGrad")
_LONGEST_SCOPE = 200  # characters of a path; what lies deeper belongs to the scope above


@dataclass(frozen=True, slots=True, eq=False)
class StepCalls:
    """Calls in order of start. table: OP, LAUNCH or ANNOTATION; row: in that table of the trace, both int64[n].

    With what is known of Python also MODULE, the call of one, and LINE_MARK, from which on a function of the program
    runs on the thread: rows of `KinetoTrace.frames`.
    """

    events: Events
    table: Rows
    row: Rows

    def __len__(self) -> int:
        return len(self.row)

    @property
    def is_call(self) -> NDArray[np.bool_]:
        """bool[n]: an op or a launch, and no range around them."""
        return self.table <= LAUNCH

    @property
    def ops(self) -> Rows:
        """int64[n]: the row of each call in the trace's ops, -1 for what is no op."""
        return np.where(self.table == OP, self.row, -1)

    def index(self, table: int, size: int) -> Rows:
        """int64[size + 1]: for each row of a table of the trace its place among the calls, -1 for none (and at -1)."""
        place = np.full(size + 1, -1, np.int64)
        positions = np.flatnonzero(self.table == table)
        place[self.row[positions]] = positions
        return place


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Mark the ops and launches that lead to device events: bool per op of the trace, and per launch."""

    ops: NDArray[np.bool_]
    launches: NDArray[np.bool_]


def path(trace: KinetoTrace, links: Links, launches: Rows | None = None) -> Path:
    """The ops and launches that lead to device events; `launches`: rows that count although nothing ran (captured)."""
    launched = np.zeros(len(trace.launches) + 1, bool)
    launched[links.launch] = True
    launched[-1] = False
    start = [links.op[links.op >= 0]]
    if launches is not None:
        launched[launches] = True
        inside = links.launch_op[launches]
        start.append(inside[inside >= 0])
    marked = np.zeros(len(trace.ops) + 1, bool)
    current = np.unique(np.concatenate(start))
    while len(current):  # one round per level of nesting
        current = current[~marked[current]]
        marked[current] = True
        current = np.unique(links.parent[current])
        current = current[current >= 0]
    return Path(marked[:-1], launched[:-1])


def calls(trace: KinetoTrace, on: Path, windows: Sequence[tuple[int, int]]) -> StepCalls:
    """The calls on the path that began in one of the windows [ns], ends included, and the annotations around them."""
    tables = (trace.ops, trace.launches, trace.annotations)
    around = np.zeros(len(trace.annotations), bool)
    for low, high in windows:
        around |= (trace.annotations.start <= high) & (trace.annotations.end >= low)
    rows = [
        np.flatnonzero(on.ops & _inside(trace.ops.start, windows)),
        np.flatnonzero(on.launches & _inside(trace.launches.start, windows)),
        np.flatnonzero(around),
    ]
    parts = [table.select(row) for table, row in zip(tables, rows, strict=True)]
    return merged(
        [
            StepCalls(part, np.full(len(row), kind), row)
            for kind, part, row in zip((OP, LAUNCH, ANNOTATION), parts, rows, strict=True)
        ]
    )


def merged(parts: Sequence[StepCalls]) -> StepCalls:
    """Merge calls in order of start."""
    columns = {name: np.concatenate([getattr(part.events, name) for part in parts]) for name in COLUMNS}
    table, row = (np.concatenate([getattr(part, name) for part in parts]) for name in ("table", "row"))
    # Where times collide an op is around its launch, and a range around both.
    rank = np.asarray([1, 2, 0, 0, 0])[table]
    order = np.lexsort((columns["order"], rank, -columns["end"], columns["start"]))
    columns["order"] = np.argsort(order, kind="stable").astype(np.int64)
    events = Events(**columns, args=[text for part in parts for text in part.events.args]).select(order)
    return StepCalls(events, table[order], row[order])


def _inside(time: Rows, windows: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    inside = np.zeros(len(time), bool)
    for low, high in windows:
        inside[np.searchsorted(time, low) : np.searchsorted(time, high, "right")] = True  # tables are sorted by start
    return inside


@dataclass(frozen=True, slots=True)
class Marked:
    """Nodes whose user annotations are scopes and phases, as our own marks are in a live run."""

    inner: Nodes
    names: tuple[str, ...]

    @property
    def is_op(self) -> NDArray[np.bool_]:
        """See `roofline.pytorch.nodes.Nodes`."""
        return self.inner.is_op

    @property
    def parent(self) -> Rows:
        """See `roofline.pytorch.nodes.Nodes`."""
        return self.inner.parent

    @property
    def sequence(self) -> Rows:
        """See `roofline.pytorch.nodes.Nodes`."""
        return self.inner.sequence

    @property
    def thread(self) -> Rows:
        """See `roofline.pytorch.nodes.Nodes`."""
        return self.inner.thread

    def __len__(self) -> int:
        return len(self.names)

    def call(self, index: int, /) -> Call:
        """See `roofline.pytorch.nodes.Nodes`."""
        return self.inner.call(index)


def marked(nodes: Nodes, step: StepCalls) -> Marked:
    """Return the nodes of a step with the names of annotations and modules turned into marks; nested ones are a path.

    Nodes of the engine that has no annotations of its own are marked as such annotations.
    """
    names = list(nodes.names)
    if not any(name.startswith(EVALUATE) for name in names):
        names = [f"{EVALUATE}: {name}" if _GRADIENT.fullmatch(name) else name for name in names]
    paths: dict[int, str] = {}
    for index in np.flatnonzero(~step.is_call).tolist():  # the ranges of one step
        name = names[index]
        if step.table[index] == LINE_MARK:
            function = python_calls.parsed(name) if step.row[index] >= 0 else None
            names[index] = f"{LINE}{function.file}:{function.line}" if function else LINE
        elif _OPTIMIZER.fullmatch(name):
            names[index] = f"{PHASE}optimizer"
        elif _BACKWARD.fullmatch(name):
            names[index] = f"{PHASE}backward"
        elif not _NO_SCOPE.match(name) and batch(name) is None:
            above, module = _above(nodes.parent, index, paths), python_calls.module(name)
            label = " ".join((module or name).strip("# \t").split()).replace("/", "|") or "(unnamed)"
            # A module is one range, whatever else of its own it calls: its number is that of the object.
            inside = module is not None and above.rpartition("/")[2] == label
            scope = above if inside else f"{above}/{label}" if above else label
            paths[index] = scope if len(scope) <= _LONGEST_SCOPE else above or label[:_LONGEST_SCOPE]
            names[index] = SCOPE + paths[index]
    return Marked(nodes, tuple(names))


def _above(parent: Rows, index: int, paths: Mapping[int, str]) -> str:
    """The scope around a node. Ranges are nested a few deep; what is deeper than that is damage."""
    for _ in range(64):
        index = int(parent[index])
        if index < 0:
            return ""
        if index in paths:
            return paths[index]
    return ""
