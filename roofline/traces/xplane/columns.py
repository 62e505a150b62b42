"""Columns of many encoded XEvents or XStats, without an object for each of them.

An encoded message is a row of fields, so that messages one after another are again one message; decoded by a
class whose fields are all repeated, it holds each field's values in order: a column, made in C. A message that
leaves a field out would shift that column. Where the lengths show that one does, the messages are joined a
second time with a mark after each, in the same field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from operator import eq
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError, Message

from roofline.traces.xplane.proto import XEvent, XEvents, XStat, XStats

_LEAST = -(1 << 63)
_NO_MESSAGE = b"\x00"  # begins no message, as there is no field 0: nothing in a trace is equal to it
_SINGLE = {XEvents: XEvent, XStats: XStat}

Values = tuple[np.ndarray, str, Sequence[Any]]


def numbers(kind: type[Message], encoded: Sequence[bytes], fields: Sequence[str]) -> list[np.ndarray]:
    """For each of the int64 `fields` the column int64[n] of its values in the n messages, 0 where left out.

    `kind` is XEvents for encoded XEvents, XStats for encoded XStats. Raises DecodeError for damaged ones.
    """
    joined = kind.FromString(b"".join(encoded))
    return [_number(kind, encoded, name, getattr(joined, name)) for name in fields]


def _number(kind: type[Message], encoded: Sequence[bytes], name: str, numbers: Sequence[int]) -> np.ndarray:
    n = len(encoded)
    if len(numbers) == n:
        return np.fromiter(numbers, np.int64, n)
    column = np.zeros(n, np.int64)
    if len(numbers):
        mark = _unlike(np.fromiter(numbers, np.int64))
        after_each = _SINGLE[kind](**{name: mark}).SerializeToString()
        marked = np.fromiter(getattr(kind.FromString(_with_marks(encoded, after_each)), name), np.int64)
        is_value, row = _rows(marked == mark, n)
        column[row] = marked[is_value]
    return column


def _unlike(values: np.ndarray) -> int:
    """A number that is none of the int64 `values`."""
    if values.min() > _LEAST:
        return _LEAST
    return int(np.setdiff1d(_LEAST + np.arange(len(values) + 1), values)[0])


def stats(events: Sequence[bytes]) -> tuple[np.ndarray, list[bytes]]:
    """The encoded XStats of encoded XEvents in order, and int64[m]: the index of the event that each is of."""
    after_each = XEvent(stats=[_NO_MESSAGE]).SerializeToString()
    stats_and_marks = list(XEvents.FromString(_with_marks(events, after_each)).stats)
    is_value, event = _rows(
        np.fromiter(map(eq, stats_and_marks, repeat(_NO_MESSAGE)), bool, len(stats_and_marks)), len(events)
    )
    return event, list(compress(stats_and_marks, is_value.tolist()))


def _with_marks(encoded: Sequence[bytes], mark: bytes) -> bytes:
    return mark.join((*encoded, b""))


def _rows(is_mark: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Split a column with a mark after each of n messages: which entries are values, and the message of each."""
    if np.count_nonzero(is_mark) != n:
        raise DecodeError("a message that does not end where it should")
    return ~is_mark, np.cumsum(is_mark)[~is_mark]


def values(encoded: Sequence[bytes]) -> Iterator[Values]:
    """The values of n encoded XStats of one name: (int64[k] indices, name of the value's field, k values).

    One item where all values are of one kind, as they are in traces not tampered with.
    """
    joined = XStats.FromString(b"".join(encoded))
    kinds = [field.name for field, _ in joined.ListFields() if field.name != "metadata_id"]
    if len(kinds) == 1 and len(getattr(joined, kinds[0])) == len(encoded):
        yield np.arange(len(encoded)), kinds[0], getattr(joined, kinds[0])
        return
    single = [XStat.FromString(stat) for stat in encoded]
    kind_of = np.array([stat.WhichOneof("value") or "" for stat in single])
    for kind in kinds:
        at = np.flatnonzero(kind_of == kind)
        yield at, kind, [getattr(single[i], kind) for i in at]
