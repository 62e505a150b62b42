"""Reads a Chrome trace of torch.profiler (Kineto), recorded here or elsewhere, into columns.

Times are whole nanoseconds. Whatever is mended or dropped is counted in `KinetoTrace.warnings`. Calls of Python, over
half of a trace that has them, and flows are kept without their arguments; instant events are left out.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from roofline.errors import InputError
from roofline.traces.chrome import json as chrome_json
from roofline.traces.chrome import reader as chrome
from roofline.traces.chrome.reader import Repair
from roofline.traces.kineto.events import NO_SPANS, Arguments, Events, Spans

TORCH = "torch.profiler"
KINDS = ("op", "runtime", "driver", "kernel", "memcpy", "memset", "annotation", "sync", "operator")
OP, RUNTIME, DRIVER, KERNEL, MEMCPY, MEMSET, ANNOTATION, SYNC, _OPERATOR = range(len(KINDS))

# The categories of every generation of Kineto; the capitalised ones are those of 2021.
_CATEGORY = {
    "cpu_op": OP,
    "Operator": _OPERATOR,  # ops and the ranges of users and torch alike, told apart by their names
    **dict.fromkeys(("cuda_runtime", "hip_runtime", "Runtime"), RUNTIME),
    "cuda_driver": DRIVER,
    **dict.fromkeys(("kernel", "Kernel"), KERNEL),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), MEMCPY),
    **dict.fromkeys(("gpu_memset", "Memset"), MEMSET),
    "user_annotation": ANNOTATION,
    "cuda_sync": SYNC,
}
#: Accelerators of other kinds than ours, and the categories that Kineto has for what they and their runtimes do.
_ACCELERATORS = {
    "an MTIA accelerator": ("mtia_runtime", "mtia_ccp_events", "mtia_insight", "mtia_workloadd", "mtia_counters"),
    "an Intel Gaudi accelerator (HPU)": ("hpu_op", "hpu_runtime"),
    "an Intel GPU (XPU)": ("xpu_runtime", "xpu_driver"),
    "an accelerator of Glow": ("glow_runtime",),
    "an accelerator of an extension of PyTorch (privateuse1)": ("privateuse1_runtime", "privateuse1_driver"),
}
_CATEGORY.update({c: len(KINDS) + n for n, names in enumerate(_ACCELERATORS.values()) for c in names})
#: What is kept by its time, its thread and its name or id alone.
_FRAME, _FLOW = 64, 65
#: Flows from what the host calls to what the device does, as each generation of Kineto names them.
_FLOWS = ("ac2g", "async_cpu_to_gpu")
_CATEGORY.update({"python_function": _FRAME, **dict.fromkeys(_FLOWS, _FLOW)})
#: Nodes of autograd, which have no "::" and are ops nevertheless.
_NODE = re.compile(r"\w+Backward\d*")
_DAY = 86_400 * 10**9  # [ns] no step lasts a day: what lies further from the median time is damage
_MOST = 40_000_000  # events; their columns take 5 GB


class _Ids(msgspec.Struct, gc=False):
    """The keys of `args` that link events."""

    correlation: int = -1
    external: int = msgspec.field(default=-1, name="External id")
    external_2021: int = msgspec.field(default=-1, name="external id")
    order: int = msgspec.field(default=-1, name="Ev Idx")
    order_2022: int = msgspec.field(default=-1, name="Profiler Event Index")


_ID_NAMES = tuple(field.encode_name for field in msgspec.structs.fields(_Ids))
_ID_FIELDS = tuple(map(operator.attrgetter, _Ids.__struct_fields__))
_IDS = msgspec.json.Decoder(list[_Ids])
_NAME, _PID, _TID, _ARGS, _ID = map(operator.attrgetter, ("name", "pid", "tid", "args", "id"))


@dataclass(frozen=True, slots=True, eq=False)
class KinetoTrace:
    """A trace as tables.

    `ops`: what the framework dispatched. `launches`: calls of the runtime and driver, synchronisations among
    them. `device`: kernels, copies and fills, told apart by `kind`; their thread is (device, stream).
    `annotations`: ranges named by the user or the framework. `waits`: what the device's recorder tells of streams and
    hosts that wait for events (`cuda_sync`). `frames`: calls of Python. `flows`: ends of flows from calls of the
    runtime to what they launched, with an id each.
    `threads`: (pid, tid) as text. `origin` [ns]: the trace's own time at 0; with `base_time` [ns] added, where
    not None, since the epoch.
    `recorded`: number of events in the file, of all kinds. `accelerator`: one of a kind that we cannot read, if it is
    the trace of such a one. `recorder`: what wrote the trace, TORCH or another profiler whose format has such tables.
    """

    ops: Events
    launches: Events
    device: Events
    annotations: Events
    waits: Events
    frames: Spans
    flows: Spans
    names: tuple[str, ...]
    threads: tuple[tuple[str, str], ...]
    device_properties: tuple[dict[str, Any], ...]
    warnings: tuple[Repair, ...]
    origin: int
    base_time: int | None
    record_shapes: bool | None
    recorded: int
    metadata: dict[str, Any]
    accelerator: str | None = None
    recorder: str = TORCH

    def matches(self, pattern: re.Pattern[str], codes: np.ndarray) -> np.ndarray:
        """bool per event: whether a pattern is in its name, of events by the numbers of their names.

        Each name that they have is searched once, and no other: there may be a kernel's name for each kernel.
        """
        found = np.zeros(len(self.names), bool)
        for code in np.flatnonzero(np.bincount(codes, minlength=len(found))).tolist():
            found[code] = pattern.search(self.names[code]) is not None
        matching: np.ndarray = found[codes]
        return matching


def read(source: str | Path | bytes, *, max_bytes: int = 1 << 34) -> KinetoTrace:
    """Reads a trace from a path or from bytes: .json, .json.gz, or a .zip that holds one of them.

    `max_bytes` bounds the inflated size, 16 GiB by default; in memory are only the columns and the arguments of the
    events kept, about a third of it. Raises InputError if the file cannot be read, is larger, holds no event of
    torch.profiler, or more than 40 million of them.
    """
    name = "the trace" if isinstance(source, bytes) else str(source)
    reader = chrome.Reader(source, name, max_bytes, _CATEGORY, _FLOWS)
    table = _Table()
    for chunk in reader.chunks():
        table.add(chunk)
        if table.rows > _MOST:
            raise InputError(f"{name} holds more than {_MOST:,} ops, launches and kernels; record fewer steps.")
    if not table.rows:
        raise InputError(f"{name} holds no op, launch or kernel; record it with torch.profiler and export it again.")
    return table.trace(reader, name)


class _Table:
    """The columns of the chunks read so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._columns: list[tuple[np.ndarray, ...]] = []
        self._spans: dict[int, list[tuple[np.ndarray, ...]]] = {_FRAME: [], _FLOW: []}
        self._names: dict[str, int] = {}
        self._pairs: dict[tuple[Any, Any], int] = {}
        self._buffers: list[bytes] = []
        self._buffered = 0
        self._odd = 0

    def add(self, chunk: chrome.Chunk) -> None:
        spans = chunk.kind >= _FRAME
        if spans.any():
            for kind, parts in self._spans.items():
                chosen = (chunk.kind == kind) & chunk.timed
                if chosen.any():
                    parts.append(self._span(chunk.select(chosen), kind))
            chunk = chunk.select(~spans)
        if not len(chunk):
            return
        self.rows += len(chunk)
        args = list(map(_ARGS, chunk.events))
        length = np.fromiter(map(len, args), np.int64, len(args))
        buffer = b"[" + b",".join(args) + b"]"  # a copy, so that the text of the trace can go
        begin = self._buffered + 1 + np.cumsum(length + 1) - length - 1
        self._buffers.append(buffer)
        self._buffered += len(buffer)
        ids, odd = _ids(buffer, args)
        self._odd += odd
        external = np.where(ids[1] >= 0, ids[1], ids[2])
        order = np.where(ids[3] >= 0, ids[3], ids[4])
        order = np.where(order >= 0, order, chunk.position)
        name, pair = self._name(chunk), self._pair(chunk)
        times = (chunk.start, chunk.timed, chunk.length, chunk.measured)
        self._columns.append((*times, name, pair, chunk.kind, order, ids[0], external, begin, length))

    def _name(self, chunk: chrome.Chunk) -> np.ndarray:
        return _codes(self._names, list(map(_NAME, chunk.events)))

    def _pair(self, chunk: chrome.Chunk) -> np.ndarray:
        return _codes(self._pairs, list(zip(map(_PID, chunk.events), map(_TID, chunk.events), strict=True)))

    def _span(self, chunk: chrome.Chunk, kind: int) -> tuple[np.ndarray, ...]:
        """Return start and length [ns], name, thread and id of each: a flow has no name of its own, a frame no id."""
        if kind == _FLOW:
            name, ids = np.full(len(chunk), _codes(self._names, [""])[0]), _integers(list(map(_ID, chunk.events)))
        else:
            name, ids = self._name(chunk), np.full(len(chunk), -1)
        return chunk.start, np.where(chunk.measured, chunk.length, 0), name, self._pair(chunk), ids

    def _spans_of(self, kind: int, times: Times, names: np.ndarray, threads: np.ndarray) -> Spans:
        """All events of a kind that are near the others; names, threads: what stands for the codes of each."""
        parts = self._spans[kind]
        if not parts:
            return NO_SPANS
        start, length, name, pair, ids = map(np.concatenate, zip(*parts, strict=True))
        rows = np.flatnonzero((np.abs(start - times.middle) <= _DAY) & (length >= 0) & (length <= _DAY))
        rows = rows[np.argsort(start[rows], kind="stable")]
        start = start[rows] - times.origin
        return Spans(start, start + length[rows], names[name[rows]], threads[pair[rows]], ids[rows])

    def trace(self, reader: chrome.Reader, trace_name: str) -> KinetoTrace:
        """All chunks as tables."""
        start, timed, length, measured, *columns_by_event = map(np.concatenate, zip(*self._columns, strict=True))
        self._columns = []
        times = settle(start, timed, length, measured, trace_name)
        repairs = [
            *reader.repairs,
            *times.repairs,
            Repair("events with ids that are not numbers or too large", self._odd),
        ]
        texts = [name if isinstance(name, str) else chrome_json.plain(name) for name in self._names]
        name_code, pair, kind, order, correlation, external, begin, size = columns_by_event
        names, of_names = _merged(texts)
        name_code = of_names[name_code]
        operators = kind == _OPERATOR
        if operators.any():
            kind = np.where(operators, np.where(_are_ranges(names)[name_code], ANNOTATION, OP), kind).astype(np.int8)
        threads, of_threads = _merged((chrome_json.plain(pid), chrome_json.plain(tid)) for pid, tid in self._pairs)
        events = Events(
            times.start, times.end, name_code, of_threads[pair], kind, order, correlation, external,
            Arguments(self._buffers, begin, size),
        )  # fmt: skip

        def table(*kinds: int) -> Events:
            return sorted_by_start(events, times.near & np.isin(kind, kinds))

        header = reader.header
        base, shapes, devices = (header.get(k) for k in ("baseTimeNanoseconds", "record_shapes", "deviceProperties"))
        return KinetoTrace(
            ops=table(OP),
            launches=table(RUNTIME, DRIVER),
            device=table(KERNEL, MEMCPY, MEMSET),
            annotations=table(ANNOTATION),
            waits=table(SYNC),
            frames=self._spans_of(_FRAME, times, of_names, of_threads),
            flows=self._spans_of(_FLOW, times, of_names, of_threads),
            names=names,
            threads=threads,
            device_properties=tuple(d for d in devices if isinstance(d, dict)) if isinstance(devices, list) else (),
            warnings=tuple(repair for repair in repairs if repair.count),
            origin=times.origin,
            base_time=base if isinstance(base, int) else None,
            record_shapes=None if shapes is None else bool(shapes),
            recorded=reader.recorded,
            metadata=header,
            accelerator=next(
                (list(_ACCELERATORS)[k - len(KINDS)] for k in np.unique(kind).tolist() if k >= len(KINDS)), None
            ),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Hold the times of events [ns], int64: `start` and `end` after `origin`, the first one; `middle` is their median.

    near: bool, which events have a usable time: the others are to be left out.
    """

    start: np.ndarray
    end: np.ndarray
    near: np.ndarray
    origin: int
    middle: int
    repairs: tuple[Repair, ...]


def settle(start: np.ndarray, timed: np.ndarray, length: np.ndarray, measured: np.ndarray, trace_name: str) -> Times:
    """Mend the times of events: leave out what has none or lies a day from the others; 0 ns for an impossible length.

    start, length: int64 [ns]. timed, measured: bool, which of them are numbers. Raises InputError where none is.
    """
    if not timed.any():
        raise InputError(f"no event of {trace_name} has a usable time; record the trace again.")
    times = start[timed]
    middle = np.partition(times, len(times) // 2)[len(times) // 2]  # the median, and one of the times
    near = timed & (np.abs(start - middle) <= _DAY)
    measured = measured & (length >= 0) & (length <= _DAY)
    origin = int(start[near].min())
    start = np.where(near, start - origin, 0)
    repairs = (
        Repair("events without a usable time dropped", int((~timed).sum())),
        Repair("events more than a day away from the others dropped", int((timed & ~near).sum())),
        Repair("events with a missing or impossible duration counted as 0 ns", int((near & ~measured).sum())),
    )
    return Times(start, start + np.where(measured, length, 0), near, origin, int(middle), repairs)


def sorted_by_start(events: Events, chosen: np.ndarray) -> Events:
    """Return the events that a mask marks, sorted by (start, order)."""
    rows = np.flatnonzero(chosen)
    return events.select(rows[np.lexsort((events.order[rows], events.start[rows]))])


def _are_ranges(names: Sequence[str]) -> np.ndarray:
    """bool[names]: an Operator of that name is a range that torch or the user named, and no op.

    An op is in a namespace, or the inner half of one (`detach_` in `aten::detach_`), or a node of autograd.
    """
    given = set(names)
    return np.asarray([not ("::" in n or f"aten::{n}" in given or _NODE.fullmatch(n)) for n in names], bool)


def _codes(numbers: dict[Any, int], values: list[Any]) -> np.ndarray:
    """Number each value (int32) in order of appearance; `numbers` takes up the new ones."""
    for value in dict.fromkeys(values):
        numbers.setdefault(value, len(numbers))
    return np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))


def _merged(values: Iterable[Any]) -> tuple[tuple[Any, ...], np.ndarray]:
    """The distinct values, and int32[values], which of them each is: what was told apart may have the same text."""
    distinct: dict[Any, int] = {}
    number = _codes(distinct, list(values))
    return tuple(distinct), number


def _ids(buffer: bytes, args: Sequence[msgspec.Raw]) -> tuple[np.ndarray, int]:
    """int64[5, n], one row per field of _Ids, -1 where absent; and the number of events with unusual ones."""
    try:
        rows = _IDS.decode(buffer)
        if len(rows) == len(args):
            return np.array([list(map(field, rows)) for field in _ID_FIELDS], np.int64), 0
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        pass
    read_ids = [_odd_ids(bytes(text)) for text in args]
    odd = sum(changed for _, changed in read_ids)
    return np.array([ids for ids, _ in read_ids], np.int64).reshape(-1, len(_ID_NAMES)).T, odd


def _odd_ids(text: bytes) -> tuple[list[int], bool]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return [-1] * len(_ID_NAMES), value is not None
    raw = [value.get(name, -1) for name in _ID_NAMES]
    ids = [_integer(item) for item in raw]
    return ids, ids != raw


def _integers(values: list[Any]) -> np.ndarray:
    """Read each as `_integer` does, int64[values]; whole numbers, which they nearly always are, at once."""
    if {*map(type, values)} <= {int}:
        with suppress(OverflowError):
            return np.array(values, np.int64)
    return np.array([_integer(value) for value in values], np.int64)


def _integer(value: Any) -> int:
    """An id as int64; one that is too large keeps its identity as a remainder, anything else is absent."""
    if isinstance(value, str):
        try:
            value = int(value[:64], 0)
        except ValueError:
            return -1
    if isinstance(value, bool) or not isinstance(value, int):
        return -1
    return value if -(2**63) <= value < 2**63 else 2**61 + value % (2**61 - 1)
