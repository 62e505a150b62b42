"""Read where the results of a TensorFlow step lie: what its allocators tell the profiler.

An allocation names the node that asked for it, a release only the address (`MemoryAllocation`, `MemoryDeallocation` in
tsl/framework/bfc_allocator.cc and cpu_allocator_impl.cc). A GPU's allocator always tells, and so does oneDNN's, which
TensorFlow takes on some CPUs; that of other CPUs does while it keeps statistics, which nothing but a function of
TensorFlow's library turns on.
"""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from roofline.costs.counted import CountedOp
from roofline.traces.xplane.proto import XEvent, XLine, XPlane, XSpace
from roofline.traces.xplane.stats import values

#: `tsl::EnableCPUAllocatorStats()`, `tsl::DisableCPUAllocatorStats()` as TensorFlow 2.21 exports them.
_ENABLE, _DISABLE = "_ZN3tsl23EnableCPUAllocatorStatsEv", "_ZN3tsl24DisableCPUAllocatorStatsEv"
_ALLOCATED, _RELEASED = b"MemoryAllocation", b"MemoryDeallocation"
#: [byte] What no allocation is seen of begins at such addresses.
_ALIGNED = 4096


@dataclass(frozen=True, slots=True)
class Allocation:
    """A block of memory. time: when it was given, since the trace began [ps]; output: for a result and no workspace."""

    time: int
    address: int
    bytes: int
    output: bool


@dataclass(frozen=True, slots=True)
class Allocations:
    """Hold one step's, by name of the node that asked, in order of time; and when each address was released [ps]."""

    by_node: Mapping[str, Sequence[Allocation]] = field(default_factory=dict)
    released: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def release(self, block: Allocation) -> float:
        """When a block is released [ps]; infinity where the step does not release it."""
        times = self.released.get(block.address, ())
        at = bisect_right(times, block.time)
        return times[at] if at < len(times) else math.inf


#: Of a step of which none were seen.
NONE = Allocations()


def library_in(package: Path) -> ctypes.CDLL | None:
    """Return TensorFlow's library, which is in this process already. package: its folder."""
    try:
        return ctypes.CDLL(str(next(package.glob("libtensorflow_framework.so*"))))
    except (StopIteration, OSError):
        return None


@contextmanager
def reporting(library: ctypes.CDLL | None) -> Iterator[None]:
    """While active, the CPU's allocator tells the profiler what it does.

    A library without the function tells nothing.
    """
    enable, disable = getattr(library, _ENABLE, None), getattr(library, _DISABLE, None)
    if enable is None or disable is None:
        yield
        return
    enable()
    try:
        yield
    finally:
        disable()


def read(data: bytes) -> Allocations:
    """The allocations in an XSpace."""
    by_node: dict[str, list[Allocation]] = {}
    released: dict[int, list[int]] = {}
    for plane in map(XPlane.FromString, XSpace.FromString(data).planes):
        kinds = {entry.key: entry.value.name for entry in plane.event_metadata}
        names = {entry.key: entry.value.name for entry in plane.stat_metadata}
        if not {_ALLOCATED, _RELEASED} & set(kinds.values()):
            continue
        for line in map(XLine.FromString, plane.lines):
            for event in map(XEvent.FromString, line.events):
                kind = kinds.get(event.metadata_id)
                if kind not in (_ALLOCATED, _RELEASED):
                    continue
                stats = values(event.stats, names)
                address, time = stats.get(b"addr"), line.timestamp_ns * 1000 + event.offset_ps
                if not isinstance(address, int) or not address:
                    continue
                if kind == _RELEASED:
                    released.setdefault(address, []).append(time)
                    continue
                node, size = stats.get(b"tf_op"), stats.get(b"requested_bytes")
                if isinstance(node, bytes) and isinstance(size, int):
                    block = Allocation(time, address, size, stats.get(b"region_type") == b"output")
                    by_node.setdefault(node.decode("utf-8", "replace"), []).append(block)
    return Allocations(
        {node: sorted(blocks, key=lambda block: block.time) for node, blocks in by_node.items()},
        {address: sorted(times) for address, times in released.items()},
    )


# ------------------------------------------------------------------------------------------------- buffers


def addresses(
    allocations: Allocations, ops: Sequence[CountedOp], nodes: Sequence[str], lasting: Set[int]
) -> dict[int, int]:
    """Buffer -> address of its first byte [byte].

    A node that asks for no memory writes its result over an argument of that size that nothing reads any more. nodes:
    the name of each op's node. lasting: buffers of variables and constants: no allocation of the step is theirs, and no
    other buffer shares their memory, so each gets a place behind all others.
    """
    if not allocations.by_node:
        return {}
    last_read = {number: row for row, op in enumerate(ops) for number in op.reads}
    named = Counter(nodes)
    blocks: dict[int, Allocation] = {}
    sizes: dict[int, float] = {}
    for row, (op, node) in enumerate(zip(ops, nodes, strict=True)):
        touched = list(op.touched())
        for number, size in touched:
            sizes[number] = max(sizes.get(number, 0.0), size)
        if named[node] > 1:  # a name of several functions
            continue
        dying = [
            (size, blocks[number]) for number, size in touched if last_read.get(number) == row and number in blocks
        ]
        used_times: set[int] = set()
        for (is_input, _, size), number in zip(op.costed.writes, op.writes, strict=True):
            if is_input or number in blocks or number in lasting:
                continue
            block = _given(allocations, node, size, op.times, used_times)
            if block is not None:
                used_times.add(block.time)
            elif not any(allocation.bytes == size for allocation in allocations.by_node.get(node, ())):
                fitting = (candidate for bytes_given, candidate in dying if bytes_given == size)
                block = max(fitting, key=allocations.release, default=None)
            if block is not None:
                blocks[number] = block
    addresses_of = {number: block.address for number, block in blocks.items()}
    end = max((address + int(sizes[number]) for number, address in addresses_of.items()), default=0)
    for number in sorted(lasting & sizes.keys()):
        addresses_of[number] = end = -(-end // _ALIGNED) * _ALIGNED
        end += int(sizes[number])
    return addresses_of


def _given(allocations: Allocations, node: str, size: float, turns: int, used_times: Set[int]) -> Allocation | None:
    """The block of a node's result of this size; None where nobody can tell. taken: times of those of other results.

    Kernels may return a workspace: of several blocks none says that it is the one. A node of a loop has a block where
    all its turns have the same one.
    """
    fitting = [
        block for block in allocations.by_node.get(node, ()) if block.bytes == size and block.time not in used_times
    ]
    results = [block for block in fitting if block.output]
    candidates = results or fitting
    sure = len({block.address for block in candidates}) == 1 or (results and turns == 1)
    return candidates[0] if sure else None
