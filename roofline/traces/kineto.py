"""Reads a Chrome trace of torch.profiler (Kineto), recorded here or elsewhere, into columns.

Times are whole nanoseconds, taken from the text of the number: an epoch in microseconds read as float64 would
lose 0.25 µs. Whatever is mended or dropped is counted in `KinetoTrace.warnings`. Flow, python_function and
instant events, over half of most traces, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from roofline.errors import InputError
from roofline.traces import chrome
from roofline.traces.chrome import Repair

KINDS = ("op", "runtime", "driver", "kernel", "memcpy", "memset", "annotation", "sync")
OP, RUNTIME, DRIVER, KERNEL, MEMCPY, MEMSET, ANNOTATION, SYNC = range(len(KINDS))

# The categories of every generation of Kineto; the capitalised ones are those of 2021.
_CATEGORY = {
    **dict.fromkeys(("cpu_op", "Operator"), OP),
    **dict.fromkeys(("cuda_runtime", "hip_runtime", "xpu_runtime", "privateuse1_runtime", "Runtime"), RUNTIME),
    **dict.fromkeys(("cuda_driver", "xpu_driver", "privateuse1_driver"), DRIVER),
    **dict.fromkeys(("kernel", "Kernel"), KERNEL),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), MEMCPY),
    **dict.fromkeys(("gpu_memset", "Memset"), MEMSET),
    "user_annotation": ANNOTATION,
    "cuda_sync": SYNC,
}
_DAY = 86_400 * 10**9  # [ns] no step lasts a day: what lies further from the median time is damage
_LARGEST = 2**62  # [ns] the difference of two times must fit 63 bits
_WIDTH = 32  # characters of a number that are decoded together; a longer one goes the slow way


class _Ids(msgspec.Struct, gc=False):
    """The keys of `args` that link events."""

    correlation: int = -1
    external: int = msgspec.field(default=-1, name="External id")
    external_2021: int = msgspec.field(default=-1, name="external id")
    order: int = msgspec.field(default=-1, name="Ev Idx")
    order_2022: int = msgspec.field(default=-1, name="Profiler Event Index")


_ID_NAMES = tuple(field.encode_name for field in msgspec.structs.fields(_Ids))


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Complete events of one kind as columns of one length, sorted by (start, order).

    `start`, `end`: int64 [ns] after the first event of the trace. `name`: int32, index into `KinetoTrace.names`.
    `thread`: int32, index into `KinetoTrace.threads`. `kind`: int8, index into `KINDS`. `order`: int64, the
    recorder's event index, else the position in the file: breaks ties. `correlation`, `external`: int64, -1
    where there is none. `args`: undecoded JSON.
    """

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    thread: np.ndarray
    kind: np.ndarray
    order: np.ndarray
    correlation: np.ndarray
    external: np.ndarray
    args: list[bytes]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> np.ndarray:
        """Time from start to end, int64 [ns]."""
        return self.end - self.start

    def select(self, rows: np.ndarray) -> Events:
        """The given rows, a boolean mask or indices, in that order."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        columns = [getattr(self, name)[rows] for name in _COLUMNS]
        return Events(*columns, args=[self.args[row] for row in rows.tolist()])

    def arguments(self, row: int) -> dict[str, Any]:
        """`args` of one row, decoded; empty where the trace holds no object there."""
        try:
            value = json.loads(self.args[row])
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


_COLUMNS = ("start", "end", "name", "thread", "kind", "order", "correlation", "external")


@dataclass(frozen=True, slots=True, eq=False)
class KinetoTrace:
    """A trace as tables.

    `ops`: what the framework dispatched. `launches`: calls of the runtime and driver, synchronisations among
    them. `device`: kernels, copies and fills, told apart by `kind`; their thread is (device, stream).
    `annotations`: ranges named by the user or the framework. `syncs`: what a host waited for on the device.
    `threads`: (pid, tid) as text. `origin` [ns]: the trace's own time at 0; with `base_time` [ns] added, where
    not None, since the epoch. `resolution` [ns]: 1000 where all times are whole microseconds, else 1.
    `recorded`: number of events in the file, of all kinds.
    """

    ops: Events
    launches: Events
    device: Events
    annotations: Events
    syncs: Events
    names: tuple[str, ...]
    threads: tuple[tuple[str, str], ...]
    device_properties: tuple[dict[str, Any], ...]
    warnings: tuple[Repair, ...]
    origin: int
    base_time: int | None
    record_shapes: bool | None
    resolution: int
    recorded: int
    metadata: dict[str, Any]


def read(source: str | Path | bytes, *, max_bytes: int = 1 << 30) -> KinetoTrace:
    """Reads a trace from a path (.json, .json.gz) or from bytes.

    `max_bytes` bounds the inflated size; the memory needed is about 4.5 times that. Raises InputError if the
    file cannot be read, is larger, or holds no event of a Chrome trace.
    """
    what = "the trace" if isinstance(source, bytes) else str(source)
    return _tables(*chrome.read(source, what, max_bytes), what)


def _tables(events: list[chrome.Event], header: dict[str, Any], repairs: list[Repair], what: str) -> KinetoTrace:
    recorded = len(events)
    category = _CATEGORY.get
    kind = np.array([category(event.cat, -1) if event.ph == "X" else -1 for event in events], np.int8)
    kept = np.flatnonzero(kind >= 0)
    if not len(kept):
        raise InputError(f"{what} holds no op, launch or kernel; record it with torch.profiler and export it again.")
    events = [events[row] for row in kept.tolist()]
    kind = kind[kept]

    start, timed = nanoseconds([event.ts for event in events])
    if not timed.any():
        raise InputError(f"no event of {what} has a usable time; record the trace again.")
    middle = np.sort(start[timed])[timed.sum() // 2]  # the median, and one of the times
    near = timed & (np.abs(start - middle) <= _DAY)
    _count(repairs, ~timed, "events without a usable time dropped")
    _count(repairs, timed & ~near, "events more than a day away from the others dropped")
    length, measured = nanoseconds([event.dur for event in events])
    measured &= (length >= 0) & (length <= _DAY)
    _count(repairs, near & ~measured, "events with a missing or impossible duration counted as 0 ns")
    length[~measured] = 0

    whole = not (np.any(start[near] % 1000) or np.any(length[near] % 1000))
    origin = int(start[near].min())
    start = np.where(near, start - origin, 0)
    names, name = _codes([e.name if isinstance(e.name, str) else chrome.plain(e.name) for e in events])
    pairs, pair = _codes([(event.pid, event.tid) for event in events])
    threads, thread = _codes([(chrome.plain(pid), chrome.plain(tid)) for pid, tid in pairs])
    thread = thread[pair]
    args = [bytes(event.args) for event in events]  # copies, so that the text of the trace can go
    ids, odd = _ids(args)
    if odd:
        repairs.append(Repair("events with ids that are not numbers or too large", odd))
    external = np.where(ids[1] >= 0, ids[1], ids[2])
    order = np.where(ids[3] >= 0, ids[3], ids[4])
    order = np.where(order >= 0, order, kept)
    columns = (start, start + length, name, thread, kind, order, ids[0], external)

    def table(*kinds: int) -> Events:
        rows = np.flatnonzero(near & np.isin(kind, kinds))
        rows = rows[np.lexsort((order[rows], start[rows]))]
        return Events(*(column[rows] for column in columns), args=[args[row] for row in rows.tolist()])

    base, shapes, devices = (header.get(k) for k in ("baseTimeNanoseconds", "record_shapes", "deviceProperties"))
    return KinetoTrace(
        ops=table(OP),
        launches=table(RUNTIME, DRIVER),
        device=table(KERNEL, MEMCPY, MEMSET),
        annotations=table(ANNOTATION),
        syncs=table(SYNC),
        names=tuple(names),
        threads=tuple(threads),
        device_properties=tuple(d for d in devices if isinstance(d, dict)) if isinstance(devices, list) else (),
        warnings=tuple(repairs),
        origin=origin,
        base_time=base if isinstance(base, int) else None,
        record_shapes=None if shapes is None else bool(shapes),
        resolution=1000 if whole else 1,
        recorded=recorded,
        metadata=header,
    )


def _count(repairs: list[Repair], rows: np.ndarray, what: str) -> None:
    count = int(rows.sum())
    if count:
        repairs.append(Repair(what, count))


def _codes(values: list[Any]) -> tuple[list[Any], np.ndarray]:
    """The distinct values in order of appearance, and each value's index among them (int32)."""
    distinct = list(dict.fromkeys(values))
    code = {value: index for index, value in enumerate(distinct)}
    return distinct, np.fromiter(map(code.__getitem__, values), np.int32, len(values))


def _ids(args: list[bytes]) -> tuple[np.ndarray, int]:
    """int64[5, n], one row per field of _Ids, -1 where absent; and the number of events with unusual ones."""
    try:
        rows = msgspec.json.decode(b"[" + b",".join(args) + b"]", type=list[_Ids])
        if len(rows) == len(args):
            columns = [[getattr(row, name) for row in rows] for name in _Ids.__struct_fields__]
            return np.array(columns, np.int64), 0
    except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError):
        pass
    found = [_odd_ids(text) for text in args]
    odd = sum(changed for _, changed in found)
    return np.array([ids for ids, _ in found], np.int64).reshape(-1, len(_ID_NAMES)).T, odd


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


# Text -> time


def nanoseconds(texts: Sequence[bytes | msgspec.Raw]) -> tuple[np.ndarray, np.ndarray]:
    """JSON numbers in µs as int64 [ns], rounded to nearest, and which of them are numbers (bool).

    Plain decimals are decoded together, a column of characters at a time; exponents and numbers in quotes one
    by one. Null, text, an absent value and what does not fit 63 bits are no numbers: their value is 0.
    """
    texts = [bytes(text) for text in texts]
    if not texts:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    length = np.fromiter(map(len, texts), np.int64, len(texts))
    cells = np.array(texts, f"S{_WIDTH}").view(np.uint8).reshape(len(texts), _WIDTH)
    cells = cells[:, : max(1, min(_WIDTH, int(length.max())))]
    digit = (cells >= ord("0")) & (cells <= ord("9"))
    point = cells == ord(".")
    minus = cells[:, 0] == ord("-")
    # Position of the point; a number without one has it behind its last digit.
    at = np.where(point.any(axis=1), point.argmax(axis=1), length)
    plain = (digit.sum(axis=1) + point.sum(axis=1) + minus == length) & (point.sum(axis=1) <= 1)
    # Sixteen digits of microseconds (an epoch) still fit 63 bits as nanoseconds.
    plain &= (at - minus >= 1) & (at - minus <= 16) & (length <= _WIDTH)
    whole, fraction = np.zeros((2, len(texts)), np.int64)
    for column in range(cells.shape[1]):
        here = plain & digit[:, column]
        number = (cells[:, column] - ord("0")).astype(np.int64)
        whole = np.where(here & (column < at), whole * 10 + number, whole)
        # Three decimals of a microsecond are nanoseconds; the fourth rounds.
        fraction = np.where(here & (column > at) & (column <= at + 3), fraction * 10 + number, fraction)
    value = whole * 1000 + fraction * 10 ** (3 - np.clip(length - at - 1, 0, 3))
    fourth = np.minimum(at + 4, cells.shape[1] - 1)
    value += plain & (at + 4 < length) & (cells[np.arange(len(texts)), fourth] >= ord("5"))
    value = np.where(minus, -value, value)
    usable = plain & (whole < _LARGEST // 1000)
    value[~usable] = 0
    for row, number in _slowly(texts, np.flatnonzero(~plain)):
        value[row], usable[row] = number, True
    return value, usable


def _slowly(texts: list[bytes], rows: np.ndarray) -> Iterator[tuple[int, int]]:
    for row in rows.tolist():
        try:
            number = Decimal(texts[row][:80].strip(b'"').decode())
            if number.is_finite() and abs(number) < _LARGEST // 1000:
                yield row, int((number * 1000).to_integral_value())
        except (ArithmeticError, UnicodeDecodeError):  # every error of decimal is the former
            continue
