"""Events of a trace as columns, their `args` left undecoded until they are asked for."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, TypeVar, overload

import msgspec
import numpy as np

T = TypeVar("T")

_BROKEN = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)


class Arguments(Sequence[bytes]):
    """The `args` of events: JSON texts in shared buffers, found by where they begin and end.

    A hundred thousand small objects less, and choosing rows copies no text.
    """

    __slots__ = ("_begin", "_buffers", "_first", "_length")

    def __init__(self, buffers: Sequence[bytes], begin: np.ndarray, length: np.ndarray) -> None:
        """`begin`: int64, place in the buffers laid end to end; `length`: int64. No text spans two buffers."""
        self._buffers = buffers
        self._first = np.concatenate([[0], np.cumsum([len(buffer) for buffer in buffers], dtype=np.int64)])
        self._begin = begin
        self._length = length

    def __len__(self) -> int:
        return len(self._begin)

    @overload
    def __getitem__(self, row: int) -> bytes: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[bytes]: ...
    def __getitem__(self, row: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(row, slice):
            return self.select(np.arange(len(self))[row])
        begin = self._begin[row]
        number = int(np.searchsorted(self._first, begin, "right")) - 1
        at = int(begin - self._first[number])
        return self._buffers[number][at : at + int(self._length[row])]

    def __iter__(self) -> Iterator[bytes]:
        number = np.searchsorted(self._first, self._begin, "right") - 1
        at = self._begin - self._first[number]
        for buffer, begin, end in zip(number.tolist(), at.tolist(), (at + self._length).tolist(), strict=True):
            yield self._buffers[buffer][begin:end]

    def select(self, rows: np.ndarray) -> Arguments:
        """Return the arguments of the given rows, in that order."""
        chosen = Arguments.__new__(Arguments)
        chosen._buffers, chosen._first = self._buffers, self._first
        chosen._begin, chosen._length = self._begin[rows], self._length[rows]
        return chosen


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
    args: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> np.ndarray:
        """Time from start to end, int64 [ns]."""
        duration: np.ndarray = self.end - self.start
        return duration

    def select(self, rows: np.ndarray) -> Events:
        """The given rows, a boolean mask or indices, in that order."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Events(**columns, args=_chosen(self.args, rows))

    def arguments(self, row: int) -> dict[str, Any]:
        """`args` of one row, decoded; empty where the trace holds no object there."""
        text = self.args[row]
        try:
            value = msgspec.json.decode(text)
        except _BROKEN:
            value = _slowly(text)
        return value if isinstance(value, dict) else {}

    def decoded(self, rows: np.ndarray, kind: type[T]) -> list[T | None]:
        """`args` of the given rows as structs of one kind, decoded together; None where they do not fit."""
        texts = list(_chosen(self.args, np.asarray(rows, np.int64)))
        return decoded(texts, kind)


COLUMNS = ("start", "end", "name", "thread", "kind", "order", "correlation", "external")


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Events without arguments, as columns of one length, sorted by start: see `Events`. `id`: int64, -1 for none."""

    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    thread: np.ndarray
    id: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def select(self, rows: np.ndarray) -> Spans:
        """The given rows, a boolean mask or indices, in that order."""
        return Spans(self.start[rows], self.end[rows], self.name[rows], self.thread[rows], self.id[rows])


NO_SPANS = Spans(
    start=np.zeros(0, np.int64),
    end=np.zeros(0, np.int64),
    name=np.zeros(0, np.int32),
    thread=np.zeros(0, np.int32),
    id=np.zeros(0, np.int64),
)


def decoded(texts: Sequence[bytes], kind: type[T]) -> list[T | None]:
    """Each JSON text as a struct of one kind, None where it does not fit."""
    try:
        values: list[T | None] = msgspec.json.decode(b"[" + b",".join(texts) + b"]", type=GenericAlias(list, (kind,)))
        if len(values) == len(texts):
            return values
    except _BROKEN:
        pass
    return [_one(text, kind) for text in texts]


def _one(text: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except _BROKEN:
        return None


def columns(values: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    """int64[names, values]: attributes of structs."""
    attributes = [list(map(operator.attrgetter(name), values)) for name in names]
    return np.array(attributes, np.int64).reshape(len(names), len(values))


def _chosen(args: Sequence[bytes], rows: np.ndarray) -> Sequence[bytes]:
    return args.select(rows) if isinstance(args, Arguments) else [args[row] for row in rows.tolist()]


def _slowly(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
