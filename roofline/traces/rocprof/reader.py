"""Read the JSON of AMD's rocprofv3 (`--output-format json`) into the tables of a trace.

The file is in memory as text while it is read, as its records come last and behind large tables; of what is decoded no
more than a few ten thousand records are. Times are whole nanoseconds since the machine started.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from roofline.errors import InputError, MeasurementError
from roofline.traces import nesting
from roofline.traces.chrome import text as chrome_text
from roofline.traces.chrome.reader import Repair
from roofline.traces.kineto.events import NO_SPANS, Events
from roofline.traces.kineto.reader import (
    ANNOTATION,
    KERNEL,
    MEMCPY,
    RUNTIME,
    KinetoTrace,
    settle,
    sorted_by_start,
)
from roofline.traces.rocprof import records
from roofline.traces.rocprof.records import Agent, Call, Copy, Handle, Kernel, Kind, Lists, Message, Process, Symbol

T = TypeVar("T")

#: What `KinetoTrace.recorder` says of these traces.
ROCPROFV3 = "rocprofv3"
#: Bytes of JSON, which are in memory while they are read. Seven million kernels with a call each take as many.
LARGEST = 1 << 32

_TOP = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:')
_FILLED = re.compile(rb"\[\s*[^\s\]]")
_FILE = msgspec.json.Decoder(records.File)
_TOO_LARGE = 1 << 62  # [ns] the difference of two times must fit 63 bits
_WIDEST = 1 << 32  # no extent of a grid has as many work-items
_DIRECTIONS = {
    "HOST_TO_HOST": "Memcpy HtoH",
    "HOST_TO_DEVICE": "Memcpy HtoD",
    "DEVICE_TO_HOST": "Memcpy DtoH",
    "DEVICE_TO_DEVICE": "Memcpy DtoD",
}
_RECORD = "record with `rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --output-format json`"


def recognises(source: Path | bytes) -> bool:
    """Tell by its first bytes whether a file is the JSON of rocprofv3.

    A pipe, which cannot be read twice, is not looked into. Raises InputError where the file cannot be read.
    """
    if isinstance(source, Path) and not source.is_file():
        return False
    pieces = chrome_text.pieces(source, str(source), 1 << 62, lambda text, count: None)
    return _TOP.match(next(pieces, b"")) is not None


def read(source: Path | bytes, *, max_bytes: int = LARGEST) -> KinetoTrace:
    """Read a trace from a path or from bytes: .json, .json.gz, or a .zip that holds one of them.

    Its tables are those of a trace of torch.profiler without ops: calls of HIP and HSA are `launches`, ranges of roctx
    `annotations`. Raises InputError if the file cannot be read, is larger than `max_bytes` of JSON, is damaged, holds
    no record or the kernels of several processes; MeasurementError if its kernels were not recorded.
    """
    name = "the trace" if isinstance(source, bytes) else str(source)
    repairs: list[Repair] = []
    text = bytearray()
    for piece in chrome_text.pieces(source, name, max_bytes, lambda *seen: repairs.append(Repair(*seen))):
        text += piece
    try:
        processes = _FILE.decode(text).processes
    except records.BROKEN as error:
        raise InputError(f"{name} is damaged or cut off: no whole JSON of rocprofv3; {_RECORD} again.") from error
    return _Table(_of_gpu(processes, name)).trace(name, repairs)


def _of_gpu(processes: list[Process], name: str) -> Process:
    """Return the only process that used a GPU."""
    buffers = [process.buffer_records for process in processes]
    used = [any(map(_FILLED.match, (lists.kernel_dispatch, lists.memory_copy))) for lists in buffers]
    if sum(used) > 1:
        numbers = ", ".join(str(process.metadata.pid) for process, uses in zip(processes, used, strict=True) if uses)
        raise InputError(
            f"{name} holds the kernels of several processes ({numbers[:80]}): import the file of each by itself."
        )
    if any(used):
        return processes[used.index(True)]
    if any(_FILLED.match(lists.hip_api) or _FILLED.match(lists.hsa_api) for lists in buffers):
        raise MeasurementError(f"{name} holds calls of the host, and no kernel and no copy was recorded: {_RECORD}.")
    raise InputError(f"{name} holds no kernel and no copy: {_RECORD}.")


class _Codes(dict[T, int]):
    """Number what is asked for in order of appearance."""

    def __missing__(self, key: T) -> int:
        self[key] = len(self)
        return self[key]


class _Table:
    """The rows read so far: kind, start, end, name, thread, correlation and arguments of each record."""

    def __init__(self, process: Process) -> None:
        strings, lists = process.strings, Lists()
        self._buffers, self._lists, self._pid = process.buffer_records, lists, str(process.metadata.pid)
        self._agents = {agent.id.handle: agent for agent in lists.each(process.agents, Agent) if agent is not None}
        self._kernels = {
            symbol.kernel_id: symbol.name for symbol in lists.each(process.kernel_symbols, Symbol) if symbol is not None
        }
        self._kinds = [kind or Kind() for kind in lists.each(strings.buffer_records, Kind)]
        self._messages = {
            message.key: message.value for message in lists.each(strings.marker_api, Message) if message is not None
        }
        self._names: _Codes[str] = _Codes()
        self._threads: _Codes[tuple[str, str]] = _Codes()
        self._arguments: _Codes[bytes] = _Codes()
        self._nameless = 0

    def trace(self, name: str, repairs: list[Repair]) -> KinetoTrace:
        """All records as tables."""
        buffers = self._buffers
        parts = [
            self._rows(buffers.kernel_dispatch, Kernel, self._kernel),
            self._rows(buffers.memory_copy, Copy, self._copy),
            self._rows(buffers.hip_api, Call, self._call),
            self._rows(buffers.hsa_api, Call, self._call),
            self._rows(buffers.marker_api, Call, self._mark),
        ]
        kind, start, end, name_code, thread, correlation, arguments = np.concatenate(parts).T
        damaged = Repair("records that do not have the form of rocprofv3's left out", self._lists.damaged)
        times = settle(start, start > 0, end - start, np.ones(len(start), bool), name)
        nameless = Repair("kernels that the file does not name", self._nameless)
        texts = list(self._arguments)
        number = np.arange(len(kind))
        events = Events(
            times.start, times.end, name_code.astype(np.int32), thread.astype(np.int32), kind.astype(np.int8), number,
            correlation, np.full(len(kind), -1), [texts[code] for code in arguments.tolist()],
        )  # fmt: skip

        def table(*kinds: int) -> Events:
            return sorted_by_start(events, times.near & np.isin(kind, kinds))

        launches, device = _outermost(table(RUNTIME), table(KERNEL, MEMCPY))
        return KinetoTrace(
            ops=table(),
            launches=launches,
            device=device,
            annotations=table(ANNOTATION),
            waits=table(),
            frames=NO_SPANS,
            flows=NO_SPANS,
            names=tuple(self._names),
            threads=tuple(self._threads),
            device_properties=tuple(map(_properties, filter(lambda agent: agent.is_gpu, self._agents.values()))),
            warnings=tuple(repair for repair in (*repairs, *times.repairs, damaged, nameless) if repair.count),
            origin=times.origin,
            base_time=None,
            record_shapes=False,
            recorded=len(kind),
            metadata={},
            recorder=ROCPROFV3,
        )

    def _rows(self, listed: msgspec.Raw, kind: type[T], row: Callable[[T], tuple[int, ...] | None]) -> np.ndarray:
        """int64[n, 7]: the rows of a list of records; `row` makes that of one, None for one that is of no use."""
        rows = (made for record in self._lists.each(listed, kind) if record is not None and (made := row(record)))
        flat = np.fromiter((number for numbers in rows for number in numbers), np.int64)
        return flat.reshape(-1, 7)

    def _row(
        self, kind: int, record: Kernel | Copy | Call, name: str, thread: tuple[str, str], args: bytes
    ) -> tuple[int, ...]:
        start, end = (time if 0 <= time < _TOO_LARGE else 0 for time in (record.start_timestamp, record.end_timestamp))
        correlation = record.correlation_id.internal
        return (
            kind,
            start,
            end,
            self._names[name],
            self._threads[thread],
            correlation if 0 < correlation < _TOO_LARGE else -1,
            self._arguments[args],
        )

    def _kernel(self, record: Kernel) -> tuple[int, ...]:
        dispatch = record.dispatch_info
        name = self._kernels.get(dispatch.kernel_id, "")
        self._nameless += not name
        thread = self._device(dispatch.agent_id), _stream(record.stream_id, dispatch.queue_id)
        grid, block = dispatch.grid_size, dispatch.workgroup_size
        sizes = (grid.x, grid.y, grid.z, block.x, block.y, block.z)
        args = b"{}"
        if all(0 < size < _WIDEST for size in sizes):
            # Of work-items, of which a block may be the last and not full.
            blocks = (-(-grid.x // block.x), -(-grid.y // block.y), -(-grid.z // block.z))
            args = b'{"grid":[%d,%d,%d],"block":[%d,%d,%d]}' % (*blocks, block.x, block.y, block.z)
        return self._row(KERNEL, record, name or f"kernel {dispatch.kernel_id}", thread, args)

    def _copy(self, record: Copy) -> tuple[int, ...]:
        source, target = (self._agents.get(at.handle) for at in (record.src_agent_id, record.dst_agent_id))
        on_gpus = [agent for agent in (target, source) if agent is not None and agent.is_gpu]
        direction = self._operation(record.kind, record.operation).removeprefix("MEMORY_COPY_")
        name = _DIRECTIONS.get(direction, "Memcpy")
        # What a host copies to itself is not in the memory of a device.
        size = record.bytes if direction in _DIRECTIONS and direction != "HOST_TO_HOST" else None
        if len(on_gpus) == 2 and source is not target:
            name = "Memcpy PtoP"
        label = on_gpus[0].label if on_gpus else next((a.label for a in self._agents.values() if a.is_gpu), "0")
        args = b"{}" if size is None or not 0 <= size < _TOO_LARGE else b'{"bytes":%d}' % size
        thread = label, "copies" if record.stream_id is None else _stream(record.stream_id, None)
        return self._row(MEMCPY, record, name, thread, args)

    def _call(self, record: Call) -> tuple[int, ...]:
        name = self._operation(record.kind, record.operation) or "(unnamed call)"
        return self._row(RUNTIME, record, name, (self._pid, str(record.thread_id)), b"{}")

    def _mark(self, record: Call) -> tuple[int, ...] | None:
        """A range or a mark with its text; None for calls that mark nothing, which have none."""
        name = self._messages.get(record.correlation_id.internal)
        if name is None:
            return None
        return self._row(ANNOTATION, record, name, (self._pid, str(record.thread_id)), b"{}")

    def _operation(self, kind: int, operation: int) -> str:
        """Return what the file calls an operation of a kind: versions number both in other ways. "" for no name."""
        if not 0 <= kind < len(self._kinds):
            return ""
        names = self._kinds[kind].operations
        return names[operation] if 0 <= operation < len(names) else ""

    def _device(self, handle: Handle) -> str:
        agent = self._agents.get(handle.handle)
        return f"agent {handle.handle}" if agent is None else agent.label


def _stream(stream: Handle | None, queue: Handle | None) -> str:
    """Name a stream; its kernels may run on several queues, and without streams all are of number 0."""
    parts = (("stream", stream), ("queue", queue))
    return " ".join(f"{word} {handle.handle}" for word, handle in parts if handle is not None)


def _properties(agent: Agent) -> dict[str, str | int | None]:
    return {"id": agent.label, "name": agent.product_name or agent.name, "totalGlobalMem": agent.memory}


def _outermost(calls: Events, device: Events) -> tuple[Events, Events]:
    """Leave out calls inside of other calls of their thread, as HIP's of HSA, and give what they launched to these."""
    parent = nesting.parents(calls.thread, calls.start, calls.end, calls.order)
    if not (parent >= 0).any():
        return calls, device
    outermost = nesting.outermost(parent, np.ones(len(calls), bool))
    ids, first = np.unique(calls.correlation, return_index=True)
    at = np.minimum(np.searchsorted(ids, device.correlation), len(ids) - 1)
    named = (ids[at] == device.correlation) & (device.correlation >= 0)
    correlation = np.where(named, calls.correlation[outermost[first[at]]], device.correlation)
    return calls.select(parent < 0), replace(device, correlation=correlation)
