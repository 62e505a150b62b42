"""Counts a step in which compiled graphs run: their kernels become ops among those that ran eagerly.

A run of a compiled graph (a region) is a stretch of the recorded calls. What a library does in it (a product,
attention) was recorded as the op that it is, with its arguments, and is counted as in eager mode. A generated kernel
was recorded by name only; what it reads, writes and computes was noted when it was generated. Both are paired with the
graph's list of kernel calls by order and name. Where that fails the region is one op of unknown work and known
boundary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import OpClass
from roofline.costs.calls import tensors
from roofline.costs.counted import Costed, Counted, Interner
from roofline.pytorch import count as ops
from roofline.pytorch.count import Generated
from roofline.pytorch.nodes import Nodes
from roofline.traces import nesting
from roofline.traces.alignment import align

if TYPE_CHECKING:
    from roofline.pytorch.aten.engine import Engine

#: Annotation that the profiler shows around each run of a compiled graph.
CALL = "## Call CompiledFxGraph"
#: What generated kernels are called, C++ ones with the number of their graph.
_GENERATED = re.compile(r"(graph_\d+_)?(cpp|triton)_")
#: And what those from C++ templates are, with the shape of a product.
_TEMPLATE = re.compile(r"(graph_\d+_)?((grouped_)?gemm_\w+_)?kernel")
#: Set where the inside of a region is not known.
OPAQUE = "opaque-regions"


@dataclass(frozen=True, slots=True)
class Part:
    """Holds one op of the program that a kernel does: its work and traffic, and the layer it is from.

    weight: of the pieces that the compiler took it apart into, each alone (`costs.weight`). line: of the
    user's program.
    """

    costed: Costed
    scope: str
    weight: float
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """Names a buffer that goes into a compiled graph or comes out of it, by the address of its first byte [byte]."""

    address: int


@dataclass(frozen=True, slots=True)
class Launch:
    """Holds one kernel call of a region.

    event: its name in the trace; name: what the compiler calls it. extern: a library's, recorded as the op that it is.
    reads, writes: (buffer, bytes); a buffer is any hashable identity that regions share. work: of a generated kernel,
    without its bytes. parts: the ops of the program that it does; scope: of an extern. line: that asked for it, of a
    generated one for most of its work.
    """

    event: str
    name: str
    extern: bool
    reads: tuple[tuple[object, float | None], ...]
    writes: tuple[tuple[object, float | None], ...]
    inplace: bool = False
    work: Cost = field(default_factory=Cost)
    parts: tuple[Part, ...] = ()
    scope: str | None = None
    shapes: str = ""
    dtype: str | None = None
    output: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Holds one run of a compiled graph. unknown: why its launches are not known, or "".

    inputs, outputs: (buffer, bytes) of what goes in and out. inner: launches in branches and bodies of loops, which run
    any number of times.
    """

    launches: tuple[Launch, ...]
    inputs: tuple[tuple[object, float], ...]
    outputs: tuple[tuple[object, float], ...]
    unknown: str = ""
    inner: tuple[Launch, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Holds a step with its regions resolved. opaque: regions whose inside is not known, with the reason.

    inside: for each counted op whether it ran in a compiled graph; placed: whether its scope is known.
    """

    counted: Counted
    inside: NDArray[np.bool_]
    placed: NDArray[np.bool_]
    opaque: tuple[str, ...]


def count(
    nodes: Nodes,
    runs: Sequence[Run],
    engine: Engine,
    annotation: str,
    executor: str,
    addresses: Mapping[int, int] = MappingProxyType({}),
) -> Found:
    """Count a recorded step. annotation: prefix of the marks around the runs, followed by the number of the run.

    executor: what launches generated kernels where that is not what launches the ops around them, as on a CPU.
    addresses: of the recorded storages [byte].
    """
    interned, storages = Interner(), _Storages(addresses)
    kernels: dict[int, Launch] = {}
    line_of: dict[int, str | None] = {}
    scope_of: dict[int, str] = {}
    generated: dict[int, Generated] = {}
    opaque: list[str] = []
    region = _regions(nodes, annotation)
    unit = nesting.outermost(nodes.parent, nodes.is_op)
    for number, run in enumerate(runs):
        inside = np.flatnonzero(region == number)
        pairs = None if run.unknown else _paired(nodes, inside, unit, run)
        if pairs is None:
            reason = run.unknown or "its kernels are not those that were generated"
            opaque.append(reason)
            generated |= _opaque(nodes, inside, run, reason, storages, interned)
            continue
        for node, launch in pairs:
            line_of[node] = launch.line
            if launch.extern:
                storages.learn(launch, nodes, node)
                if launch.scope is not None:
                    scope_of[node] = launch.scope
            else:
                kernels[node] = launch
    for node, launch in kernels.items():
        generated[node] = _generated(launch, storages, interned, executor)
    counted = ops.count(nodes, engine, generated, scope_of, {**addresses, **storages.addresses})
    asked = tuple(replace(op, line=line_of.get(op.node) or op.line) for op in counted.ops)
    flags = (*counted.flags, OPAQUE) if opaque else counted.flags
    inside_ops = np.asarray([region[op.node] >= 0 for op in counted.ops], bool)
    # Those of calls outside are no more than guesses: compiled steps run without marks of their layers.
    named = {node for node, kernel in generated.items() if kernel.scope is not None} | set(scope_of)
    placed = np.asarray([op.node in named for op in counted.ops], bool)
    return Found(replace(counted, ops=asked, flags=flags), inside_ops, placed, tuple(opaque))


def regions_without_a_record(nodes: Nodes) -> int:
    """Count the runs of compiled graphs that the profiler shows, where nothing else is known of them."""
    return sum(name.startswith(CALL) for name in nodes.names)


def _regions(nodes: Nodes, annotation: str) -> NDArray[np.int64]:
    """Number for each node the run it lies in, or -1; by the profiler's marks where there are none of ours."""
    own_region = np.full(len(nodes), -1, np.int64)
    marks = [(index, name) for index, name in enumerate(nodes.names) if name.startswith(annotation)]
    for index, name in marks:
        own_region[index] = int(name.removeprefix(annotation))
    if not marks:
        calls = [index for index, name in enumerate(nodes.names) if name.startswith(CALL)]
        own_region[calls] = np.arange(len(calls))
    source = nesting.nearest(nodes.parent, own_region >= 0)
    return np.where(source >= 0, own_region[source], -1)


def _paired(
    nodes: Nodes, inside: NDArray[np.int64], unit: NDArray[np.int64], run: Run
) -> list[tuple[int, Launch]] | None:
    """Pair the nodes of a run with their launches, by order and name; None where a generated kernel has no twin.

    Those of branches and bodies of loops are known by name alone.
    """
    names = [_plain(name) for name in nodes.names]
    ours = {launch.event for launch in run.launches if not launch.extern}
    inner = _by_name(run.inner)
    if inner is None or ours & inner.keys():
        return None
    rows = [i for i in inside.tolist() if unit[i] == i or names[i] in ours]
    codes: dict[str, int] = {}
    names_of_rows = np.asarray([codes.setdefault(names[i], len(codes)) for i in rows], np.int64)
    names_of_launches = np.asarray([codes.setdefault(launch.event, len(codes)) for launch in run.launches], np.int64)
    twin = align(names_of_rows, names_of_launches)
    pairs = [(row, run.launches[t]) for row, t in zip(rows, twin.tolist(), strict=True) if t >= 0]
    within = [(row, inner[names[row]]) for row in inside.tolist() if names[row] in inner]
    met = sum(not launch.extern for _, launch in pairs)
    wanted = sum(not launch.extern for launch in run.launches)
    recorded = sum(names[i] in ours or bool(_GENERATED.match(names[i])) for i in inside.tolist())
    return [*pairs, *within] if met == wanted == recorded - len(within) else None


def _plain(name: str) -> str:
    """Return the name of a kernel from a C++ template without the shape of its product."""
    match = _TEMPLATE.fullmatch(name)
    return f"{match[1] or ''}kernel" if match else name


def _by_name(launches: Sequence[Launch]) -> dict[str, Launch] | None:
    """Map generated kernels by name; None where kernels of one name differ in work."""
    launch_of: dict[str, Launch] = {}
    for launch in launches:
        if not launch.extern and _figures(launch_of.setdefault(launch.event, launch)) != _figures(launch):
            return None
    return launch_of


def _figures(launch: Launch) -> object:
    return launch.work, [size for _, size in launch.reads], [size for _, size in launch.writes]


class _Storages:
    """Numbers buffers: that of the recorded storage where a library's kernel was given the buffer, or that lies at
    its address; else a new one. addresses: of buffers with new numbers.

    Recorded storages are small numbers; ours begin far beyond them.
    """

    def __init__(self, addresses: Mapping[int, int]) -> None:
        self._known: dict[object, int] = {Storage(address): storage for storage, address in addresses.items()}
        self._next = 1 << 40
        self.addresses: dict[int, int] = {}

    def learn(self, launch: Launch, nodes: Nodes, node: int) -> None:
        """Learn a library's buffers from its recorded storages: they come in the same order, results last."""
        recorded = [tensor.storage for tensor in tensors(nodes.call(node).inputs)]
        buffers = [buffer for buffer, _ in (*launch.reads, *launch.writes)]
        if len(recorded) == len(buffers) - 1:  # the result was no argument
            recorded += [tensor.storage for tensor in tensors(nodes.call(node).outputs or ())][:1]
        if len(recorded) == len(buffers):
            for buffer, storage in zip(buffers, recorded, strict=True):
                if storage >= 0:
                    self._known.setdefault(buffer, storage)

    def __call__(self, buffer: object) -> int:
        if buffer not in self._known:
            self._known[buffer] = self._next
            if isinstance(buffer, Storage) and buffer.address:
                self.addresses[self._next] = buffer.address
            self._next += 1
        return self._known[buffer]


def _generated(launch: Launch, storages: _Storages, interned: Interner, executor: str) -> Generated:
    parts = tuple(interned(part.costed) for part in launch.parts)
    read, written = [size for _, size in launch.reads], [size for _, size in launch.writes]
    cost = msgspec.structs.replace(
        launch.work,
        bytes_read=None if None in read else float(sum(filter(None, read))),
        bytes_written=None if None in written else float(sum(filter(None, written))),
    )
    if cost.bytes is None:
        cost = msgspec.structs.replace(cost, quality="unknown", note="sizes that only the run knows")
    weights = [part.weight for part in launch.parts]
    main = max(range(len(parts)), key=weights.__getitem__, default=None)
    costed = Costed(
        cost=cost,
        kind="fused",
        op_class=op_class(launch, on_cpu=bool(executor)),
        shapes=launch.shapes,
        dtype=launch.dtype,
        output=launch.output,
        reads=tuple((True, number, size or 0.0) for number, size in enumerate(read)),
        writes=tuple((False, number, size or 0.0) for number, size in enumerate(written)),
        inplace=launch.inplace,
        parts=parts,
        executor=executor,
    )
    return Generated(
        name=launch.name,
        costed=interned(costed),
        reads=tuple(storages(buffer) for buffer, _ in launch.reads),
        writes=tuple(storages(buffer) for buffer, _ in launch.writes),
        scope=None if main is None else launch.parts[main].scope,
        places=tuple(part.scope for part in launch.parts),
    )


def op_class(launch: Launch, on_cpu: bool) -> OpClass:
    """Classify a generated kernel: attention or contraction where it does a product, else what most pieces are.

    As with XLA's fusions, the pieces count, each with its work and traffic alone: a layer norm is many. On a CPU a
    kernel that draws numbers is random, whatever else it does: drawing them takes most of its time there.
    """
    if launch.work.flops:
        attends = any(part.costed.op_class == "attention" and part.costed.cost.flops for part in launch.parts)
        return "attention" if attends else "contraction"
    draws = any(name.startswith("random") for name in launch.work.functions or ())
    if draws and on_cpu:
        return "random"
    sums: dict[OpClass, float] = {}
    for part in launch.parts:
        sums[part.costed.op_class] = sums.get(part.costed.op_class, 0.0) + part.weight
    return max(sums, key=sums.__getitem__, default="movement")


def _opaque(
    nodes: Nodes, inside: NDArray[np.int64], run: Run, reason: str, storages: _Storages, interned: Interner
) -> dict[int, Generated]:
    """Count a region as one op: what goes in is read, what comes out is written."""
    node = next((i for i in inside.tolist() if nodes.names[i].startswith(CALL)), None)
    if node is None:
        return {}  # the profiler shows no event of the whole: what it shows of the inside stands for itself
    read, written = dict(run.inputs), dict(run.outputs)
    cost = unknown(f"a compiled region whose inside is not known: {reason}")
    if read or written:
        moved = float(sum(read.values())), float(sum(written.values()))
        cost = msgspec.structs.replace(cost, bytes_read=moved[0], bytes_written=moved[1])
    costed = Costed(
        cost=cost,
        kind="compiled region",
        op_class="other",
        shapes="",
        dtype=None,
        output=None,
        reads=tuple((True, number, size) for number, size in enumerate(read.values())),
        writes=tuple((False, number, size) for number, size in enumerate(written.values())),
    )
    return {
        node: Generated(
            "compiled region", interned(costed), tuple(map(storages, read)), tuple(map(storages, written)), None, ()
        )
    }
