"""Counts the bytes that a kernel of Inductor moves, from the scheduler's nodes: its inputs and outputs, nothing inside.

A buffer that is written over has a name for each of its states (`mutation_real_name` knows the first); here all of them
are one buffer.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from torch.utils._sympy.functions import Max

from roofline.pytorch.inductor.loops import LoopWork


@dataclass(frozen=True, slots=True)
class Access:
    """Holds a buffer that a kernel touches: its name, and the bytes.

    bytes: numbers or expressions of the sizes, of which the least counts; None where a library's kernel touches it.
    dtype: of its elements, as PyTorch has it; None there, too.
    """

    buffer: str
    bytes: tuple[Any, ...] | None
    dtype: Any = None


Accesses = tuple[Access, ...]


def traffic(lowered: Any, nodes: list[Any], loops: Mapping[int, LoopWork]) -> tuple[Accesses, Accesses]:
    """Return what a kernel reads from outside it, and what it writes for others.

    lowered: the graph. nodes: the scheduler's nodes of the kernel, in the order they run. loops: the work of those that
    are loops, by id of the node.
    """
    traffic_of_nodes = _Traffic(lowered, frozenset(map(id, nodes)))
    for node in nodes:
        traffic_of_nodes.add(node, loops.get(id(node)))
    reads = traffic_of_nodes.accesses(traffic_of_nodes.reads, set(traffic_of_nodes.reads), traffic_of_nodes.produced)
    return reads, traffic_of_nodes.accesses(traffic_of_nodes.writes, traffic_of_nodes.escaping)


@dataclass(slots=True)
class _Traffic:
    """Holds elements by buffer and index expression. The same expression touches the same elements, however often.

    inside: ids of the kernel's nodes. complete: buffers of which this kernel has written all. created: those that it
    made. escaping: those whose contents somebody else uses. produced: elements of a buffer that the kernel wrote itself
    before it reads them.
    """

    lowered: Any
    inside: Set[int]
    reads: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: dict[str, dict[str, Any]] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    escaping: set[str] = field(default_factory=set)
    produced: dict[str, Any] = field(default_factory=dict)

    def add(self, node: Any, work: LoopWork | None) -> None:
        """Add the accesses of the next node; `work` None: it is no loop."""
        from torch._inductor.dependencies import WeakDep

        tables = {self._buffer(name): number for name, number in (work.by_table if work else {}).items()}
        for dep in node.read_writes.reads:
            # A loop reads what it loads; that it comes after who wrote the target before it is an order, no read.
            loaded = not isinstance(dep, WeakDep) if work is None else _indexed(dep)
            if loaded or (work is not None and dep.name in work.searched):
                self._read(dep, tables)
        over = {output.get_name() for output in node.get_outputs() if output.get_mutations()}
        for dep in node.read_writes.writes:
            buffer, adds = self._buffer(dep.name), getattr(dep, "mode", None) is not None
            if adds:  # atomic_add: read, added to and written
                self._read(dep, tables)
            elements = _elements(self.lowered, buffer, dep, tables)
            _touch(self.writes, buffer, dep, elements)
            if dep.name not in over:
                self.created.add(buffer)
            is_replaced = not adds and not _indirect(dep) and elements == self.lowered.get_numel(buffer)
            if is_replaced or dep.name not in over:
                self.complete.add(buffer)
            if buffer not in self.created or _used_outside(self.lowered.scheduler, dep.name, self.inside):
                self.escaping.add(buffer)

    def accesses(
        self,
        touched: Mapping[str, Mapping[str, Any]],
        wanted: Set[str],
        produced: Mapping[str, Any] = MappingProxyType({}),
    ) -> Accesses:
        """Return accesses with the bytes of their elements, without elements that the kernel `produced`."""
        accesses = []
        for buffer in (buffer for buffer in touched if buffer in wanted):
            dtype, numel = self.lowered.get_dtype(buffer), self.lowered.get_numel(buffer)
            elements = sum(touched[buffer].values()), numel - produced.get(buffer, 0)
            accesses.append(Access(buffer, tuple(number * dtype.itemsize for number in elements), dtype))
        return tuple(accesses)

    def _buffer(self, name: str) -> str:
        return str(self.lowered.scheduler.mutation_real_name.get(name, name))

    def _read(self, dep: Any, tables: Mapping[str, Any]) -> None:
        buffer = self._buffer(dep.name)
        pieces = set(_pieces(self.lowered, buffer))
        if pieces <= self.complete:
            return
        self.produced[buffer] = sum(self.lowered.get_numel(piece) for piece in pieces & self.complete)
        _touch(self.reads, buffer, dep, _elements(self.lowered, buffer, dep, tables))


def _touch(accesses: dict[str, dict[str, Any]], buffer: str, dep: Any, elements: Any) -> None:
    elements_of = accesses.setdefault(buffer, {})
    index = str(dep.index) if _indexed(dep) else "*"
    elements_of[index] = Max(elements_of[index], elements) if index in elements_of else elements


def _elements(lowered: Any, buffer: str, dep: Any, tables: Mapping[str, Any]) -> Any:
    """Count the elements that an access touches. tables: of buffers whose index is found through another one."""
    if not _indexed(dep):
        return lowered.get_numel(buffer)
    if not _indirect(dep):
        return dep.get_numel()  # without the dimensions that are broadcast
    return tables.get(buffer, functools.reduce(lambda a, b: a * b, dep.size, 1))


def _indexed(dep: Any) -> bool:
    from torch._inductor.dependencies import MemoryDep

    return isinstance(dep, MemoryDep)


def _indirect(dep: Any) -> bool:
    return _indexed(dep) and bool(dep.is_indirect())


def _pieces(lowered: Any, buffer: str) -> list[str]:
    """List the buffers that one is made of: a concatenation has no kernel, its parts are written where they belong."""
    from torch._inductor.ir import ConcatKernel

    operation = lowered.name_to_buffer.get(buffer)
    if not isinstance(operation, ConcatKernel):
        return [buffer]
    parts: Sequence[Any] = operation.inputs  # each a node, as only templates take lists of them
    return [piece for part in parts for piece in _pieces(lowered, part.get_name())]


def _used_outside(scheduler: Any, name: str, inside: Set[int]) -> bool:
    """Tell whether anybody but the nodes `inside` (ids) uses this state of a buffer, itself or as part of another."""
    from torch._inductor.scheduler import NopKernelSchedulerNode

    buffer = scheduler.name_to_buf.get(name)
    if buffer is None:
        return True
    for user in buffer.users:
        if user.is_weak or id(user.node) in inside:
            continue
        if not isinstance(user.node, NopKernelSchedulerNode):
            return True
        # It counts among the users of its own result: that has the memory of its parts.
        inside_or_user = inside | {id(user.node)}
        if any(_used_outside(scheduler, output.get_name(), inside_or_user) for output in user.node.get_outputs()):
            return True
    return False


def reuses(lowered: Any, nodes: list[Any]) -> bool:
    """Tell whether a C++ kernel writes a result into the memory of an argument that dies with it."""
    for device in {node.get_device() for node in nodes} - {None}:
        group = getattr(lowered.scheduler.get_backend(device), "kernel_group", None)
        reused = getattr(getattr(group, "args", None), "inplace_buffers", None) or {}
        if any(len(getattr(buffer, "other_names", ())) > 1 for buffer in reused.values()):
            return True
    return False
